/*
 * The self-check of kernels that no test machine has run (RG_KERNEL_UNPROVEN):
 * AVX-512 code written on a machine without it, say.
 *
 * The first time that such a kernel could be chosen, it runs a few built-in calls
 * of its operator, with packed weights and without, on one lane and on two, in a
 * child process, and the outputs are held against the scalar reference. Whatever
 * is wrong with it, a crash and an endless loop too, it is not chosen then. The
 * check takes some milliseconds and is made once a process; kernels that a test
 * machine has run never come here.
 *
 * It looks for what is plainly wrong. Whether the last digits are right is a matter
 * for tests/kernels, on a machine that has the instructions.
 */
#ifndef RG_KERNELS_PROOF_H
#define RG_KERNELS_PROOF_H

#include "kernels/kernel.h"

/*
 * Why a kernel must not be chosen ("element 3 of ... in its self-check"); NULL: it
 * may. The CPU must have the kernel's ISA. Text that lives as long as the process.
 * Thread safe.
 */
const char *rg_kernel_refusal(const struct rg_kernel *k);

/* Checks all unproven kernels that need no more than `isa`: how many there are, how many
 * were refused, and the first of those (NULL: none). For `ridge doctor`. */
struct rg_proof_summary {
	int checked, refused;
	const struct rg_kernel *first;
};
void rg_proof_survey(uint32_t isa, struct rg_proof_summary *out);

#endif
