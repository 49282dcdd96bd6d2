//go:build mpi

#ifndef GOGCL_MPI_NATIVE_H
#define GOGCL_MPI_NATIVE_H

#include "engine.h"

enum { RECORD_BYTES = 80, MAX_ROUNDS = 17 };

/* agreement is what members tell each other to agree. */
typedef struct agreement {
	uint64_t all, any; /* AND and OR of the fingerprints of those who are behind it: equal if they agree */
	uint64_t places;   /* OR of theirs: 1, the buffers are the same memory; 2, they are not */
	unsigned char record[RECORD_BYTES]; /* what the sender's fingerprint is of */
} agreement;

/* native is the collectives of one group on one lane. */
typedef struct native {
	MPI_Comm comm;
	int rank, size, rounds;

	/* The call. */
	int kind, operation, element, root;
	int64_t count;                /* elements of a part */
	uintptr_t dst, src;           /* of Go, pinned, or of C where the call is staged */
	int in_place;
	int staged;                   /* the collective does not wait for the agreement: its memory is of C */
	int fresh;                    /* the next native_poll begins the call, whose record is in mine[0] */

	/* How far it is. */
	int round, agreed, differs, posted, over;
	int failed;                   /* an error of MPI in posting a staged collective */
	void *copy;                   /* of src, where other members are not in place */
	agreement mine[MAX_ROUNDS], theirs[MAX_ROUNDS];
	MPI_Request sends[MAX_ROUNDS], receive, collective;
} native;

int native_init(void);
int native_new(MPI_Comm comm, const int *members, int size, int tag, native **made);
void native_free(native *n);
int native_poll(uintptr_t of, int64_t nanoseconds, int yields);

#endif
