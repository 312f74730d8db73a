/* SPDX-License-Identifier: MIT */
/* Arguments of a marker, for its probe function. Async-signal-safe, as that may run in a handler.
 */
#include <errno.h>
#include <string.h>

#include "probes/include/fastinst/args.h"
#include "probes/marker/marker.h"

static const struct marker *marker_of(uint32_t id)
{
	const struct probe *probe = probe_get(id);

	return probe && probe->provider == &marker_provider ? probe->extra : NULL;
}

static void collect_registers(const struct fi_regs *regs, uint64_t all[16])
{
	const struct marker_saved *saved = (const void *)(uintptr_t)regs->rsp;
	const uint64_t values[16] = {
		regs->rax,  regs->rcx, regs->rdx,  saved->rbx, regs->rsp + sizeof(*saved),
		saved->rbp, regs->rsi, regs->rdi,  regs->r8,   regs->r9,
		regs->r10,  regs->r11, saved->r12, saved->r13, saved->r14,
		saved->r15,
	};

	memcpy(all, values, sizeof(values));
}

int fi_marker_regs(uint32_t id, const struct fi_regs *regs, uint64_t all[16])
{
	if (!regs || !all)
		return -EINVAL;
	if (!marker_of(id))
		return -ENOENT;
	collect_registers(regs, all);
	return 0;
}

int fi_marker_args(uint32_t id)
{
	const struct marker *marker = marker_of(id);

	return marker ? (int)marker->count : -ENOENT;
}

const char *fi_marker_refusal(uint32_t id, unsigned number)
{
	const struct marker *marker = marker_of(id);

	return marker && number < marker->count ? marker->operands[number].reason : NULL;
}

int fi_marker_arg(uint32_t id, const struct fi_regs *regs, unsigned number, int64_t *value)
{
	const struct marker *marker = marker_of(id);
	uint64_t all[16];

	if (!regs || !value)
		return -EINVAL;
	if (!marker || number >= marker->count)
		return -ENOENT;
	collect_registers(regs, all);
	return operand_value(&marker->operands[number], all, value) ? 0 : -ENOTSUP;
}
