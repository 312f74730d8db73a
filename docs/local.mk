# SPDX-License-Identifier: MIT
include docs/man/local.mk

if !LIBRARY_ONLY
# Installed in the folders of a clone, so that links lead on.
usersdir = $(docdir)
dist_users_DATA = CONTRIBUTING.md NEWS README.md SECURITY.md
guidesdir = $(usersdir)/docs
dist_guides_DATA = \
	docs/README.md \
	docs/architecture.md \
	docs/conform.md \
	docs/fleet.md \
	docs/guarantees.md \
	docs/install.md \
	docs/markers.md \
	docs/methods.md \
	docs/policies.md \
	docs/probes.md \
	docs/profiles.md \
	docs/security.md \
	docs/start.md \
	docs/tutorial.md
ciexamplesdir = $(guidesdir)/ci
dist_ciexamples_DATA = docs/ci/github.yml docs/ci/gitlab.yml
labdir = $(guidesdir)/lab
dist_lab_DATA = \
	docs/lab/README.md \
	docs/lab/alternatives.md \
	docs/lab/attach.md \
	docs/lab/bad-hours.md \
	docs/lab/bounds.md \
	docs/lab/calibrations.md \
	docs/lab/change-costs.md \
	docs/lab/cold-lines.md \
	docs/lab/conform-speed.md \
	docs/lab/cost-misses.md \
	docs/lab/costs.md \
	docs/lab/edges-price.md \
	docs/lab/edges.md \
	docs/lab/entries.md \
	docs/lab/epochs.md \
	docs/lab/exact-counts.md \
	docs/lab/executors.md \
	docs/lab/fleet-scale.md \
	docs/lab/gap-lengths.md \
	docs/lab/growth.md \
	docs/lab/line-stores.md \
	docs/lab/litmus.md \
	docs/lab/long-waits.md \
	docs/lab/marked-programs.md \
	docs/lab/marker-costs.md \
	docs/lab/membarrier-contention.md \
	docs/lab/near-far.md \
	docs/lab/paper-protocols.md \
	docs/lab/peer-programs.md \
	docs/lab/peers.md \
	docs/lab/probe-aims.md \
	docs/lab/probe-costs.md \
	docs/lab/profile-cost.md \
	docs/lab/profile-counts.md \
	docs/lab/profile-times.md \
	docs/lab/programs.md \
	docs/lab/promises.md \
	docs/lab/protocols.md \
	docs/lab/quick-runs.md \
	docs/lab/real-programs.md \
	docs/lab/real-toggling.md \
	docs/lab/rebuild.md \
	docs/lab/rest.md \
	docs/lab/site-boundaries.md \
	docs/lab/tail-causes.md \
	docs/lab/tail.md \
	docs/lab/verify-power.md \
	docs/lab/waits.md
machinesdir = $(usersdir)/results
dist_machines_DATA = results/README.md results/machines.md
picturesdir = $(guidesdir)/pictures
dist_pictures_DATA = \
	docs/pictures/crossing.svg \
	docs/pictures/house.svg \
	docs/pictures/ladder.svg \
	docs/pictures/policy.svg \
	docs/pictures/stores.svg
endif

tests_compute += \
	docs/tests/test_lengths.sh \
	docs/tests/test_pictures.sh \
	docs/tests/test_readme.sh
not_asan += docs/tests/%
in_dist += docs/tests/test_man.sh
if !LIBRARY_ONLY
tests_compute += \
	docs/tests/test_commands.sh \
	docs/tests/test_html.sh \
	docs/tests/test_machines.sh \
	docs/tests/test_man.sh \
	docs/tests/test_ci.sh
endif
EXTRA_DIST += \
	docs/tests/test_ci.sh \
	docs/tests/test_commands.sh \
	docs/tests/test_html.sh \
	docs/tests/test_machines.sh \
	docs/tests/test_man.sh \
	docs/tests/test_lengths.sh \
	docs/tests/test_pictures.sh \
	docs/tests/test_readme.sh
