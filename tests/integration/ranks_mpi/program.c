/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank that computes on the GPU and reduces on the CPU with MPI.
 *
 *	mpi_program STEPS LATE_RANK LATE_MS
 *
 * In each step, the late rank prepares its batch longer. LATE_RANK -1: none is late.
 */
#include <cuda.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ELEMENTS 1024
#define LOAD_MS	 2

static void check(CUresult result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: error %d\n", what, result);
	exit(1);
}

/* Waits for data. */
static __attribute__((noinline)) void prepare_batch(double *batch, int ms)
{
	struct timespec time = {.tv_nsec = ms * 1000000L};

	nanosleep(&time, NULL);
	for (int i = 0; i < ELEMENTS; i++)
		batch[i] = batch[i] * 0.5 + i;
}

static void train_step(CUdeviceptr memory, double *batch, int ms)
{
	double sum[ELEMENTS];

	prepare_batch(batch, ms);
	check(cuMemcpyHtoD(memory, batch, ELEMENTS * sizeof(*batch)), "copy to the GPU");
	check(cuMemcpyDtoH(batch, memory, ELEMENTS * sizeof(*batch)), "copy to the host");
	MPI_Allreduce(batch, sum, ELEMENTS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 1, late = argc > 2 ? atoi(argv[2]) : -1, rank;
	int late_ms = argc > 3 ? atoi(argv[3]) : 0;
	double batch[ELEMENTS] = {0};
	CUdeviceptr memory;
	CUcontext context;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	check(cuInit(0), "init");
	check(cuDevicePrimaryCtxRetain(&context, 0), "context");
	check(cuCtxSetCurrent(context), "context");
	check(cuMemAlloc(&memory, sizeof(batch)), "allocate");
	for (int step = 0; step < steps; step++)
		train_step(memory, batch, LOAD_MS + (rank == late ? late_ms : 0));
	MPI_Finalize();
	return 0;
}
