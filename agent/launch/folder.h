/* SPDX-License-Identifier: MIT */
/*
 * Folders for the time that a command runs. A command that was killed leaves its folder behind, and
 * the next command removes it. A live command holds a lock on its folder, which the kernel drops
 * when it ends. A PID would not tell: another process may have it by now.
 */
#ifndef AGENT_LAUNCH_FOLDER_H
#define AGENT_LAUNCH_FOLDER_H

/*
 * folder_make - a new one, by a path that ends in XXXXXX, as mkdtemp(3) has it; locked until this
 * process ends. Those of the same kind that are left over are removed. A negative errno, and then
 * the path is as it was.
 */
int folder_make(char *path);

/* folder_remove - with the files in it. */
void folder_remove(const char *path);

#endif
