/* descriptor.h - the library's file descriptors, out of the program's way: programs
 * and shells count on the small ones.
 */
#ifndef EK_DESCRIPTOR_H
#define EK_DESCRIPTOR_H

/* Has the kernel make the process's table of descriptors long enough for ours.
 * Before MPI_Init, which starts threads: the table of a process with threads is
 * not made longer before all processors have been through the kernel, and that
 * takes 10 ms and more. */
void ek_descriptor_make_room(void);

/* Moves a descriptor of ours up; returns it as it is if that can't be done. */
int ek_descriptor_raise(int descriptor);

#endif
