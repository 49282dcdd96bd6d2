//go:build mpi

#include "native.h"

#include <stdlib.h>
#include <string.h>

/* The numbers of tensor.DType. MPI has no 16-bit floats. */
enum { BOOL = 1, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64 };

static MPI_Datatype element(int i) {
	const MPI_Datatype all[] = {MPI_DATATYPE_NULL, MPI_C_BOOL, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T,
		MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T, MPI_DATATYPE_NULL, MPI_DATATYPE_NULL, MPI_FLOAT,
		MPI_DOUBLE};
	return all[i];
}

static int element_bytes(int i) {
	const int all[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};
	return all[i];
}

/* Operators of our own, where those of a library are wrong. Open MPI 4.1.4 adds and multiplies integers of 8 and 16 bits
   by instructions that saturate (open-mpi/ompi issue 8045). MPICH 4.0.2 compares unsigned integers as if they were
   signed. */
static MPI_Op own_sum, own_product, own_min, own_max;

#define COMBINE(T, result)                             \
	do {                                               \
		const T *a = in;                               \
		T *b = inout;                                  \
		for (int i = 0; i < *count; i++) {             \
			const T x = a[i], y = b[i];                \
			b[i] = (T)(result);                        \
		}                                              \
	} while (0)

/* The operators of narrow integers: in two's complement the sign does not matter. */
#define NARROW(name, result)                                                            \
	static void name(void *in, void *inout, int *count, MPI_Datatype *type) {           \
		if (*type == MPI_INT8_T || *type == MPI_UINT8_T) {                              \
			COMBINE(uint8_t, result);                                                   \
		} else {                                                                        \
			COMBINE(uint16_t, result);                                                  \
		}                                                                               \
	}

#define UNSIGNED(name, result)                                                          \
	static void name(void *in, void *inout, int *count, MPI_Datatype *type) {           \
		if (*type == MPI_UINT8_T) {                                                     \
			COMBINE(uint8_t, result);                                                   \
		} else if (*type == MPI_UINT16_T) {                                             \
			COMBINE(uint16_t, result);                                                  \
		} else if (*type == MPI_UINT32_T) {                                             \
			COMBINE(uint32_t, result);                                                  \
		} else {                                                                        \
			COMBINE(uint64_t, result);                                                  \
		}                                                                               \
	}

NARROW(narrow_sum, (unsigned)x + y)
NARROW(narrow_product, (unsigned)x * y)
UNSIGNED(unsigned_min, x < y ? x : y)
UNSIGNED(unsigned_max, x > y ? x : y)

/* native_init makes the operators. */
int native_init(void) {
	int e;
	if ((e = MPI_Op_create(narrow_sum, 1, &own_sum)) || (e = MPI_Op_create(narrow_product, 1, &own_product)) ||
		(e = MPI_Op_create(unsigned_min, 1, &own_min))) {
		return e;
	}
	return MPI_Op_create(unsigned_max, 1, &own_max);
}

/* operation is an operator, by the number of a transport.NativeOperator, for elements of a type. */
static MPI_Op operation(int i, int type) {
	const int narrow = type == INT8 || type == INT16 || type == UINT8 || type == UINT16;
	const int is_unsigned = type >= UINT8 && type <= UINT64;
	const MPI_Op all[] = {MPI_OP_NULL, narrow ? own_sum : MPI_SUM, narrow ? own_product : MPI_PROD,
		is_unsigned ? own_min : MPI_MIN, is_unsigned ? own_max : MPI_MAX, MPI_LAND, MPI_LOR};
	return all[i];
}

/* native_new makes a communicator of some processes. It returns when all of them have called it. */
int native_new(MPI_Comm comm, const int *members, int size, int tag, native **made) {
	native *n = calloc(1, sizeof *n);
	MPI_Group all, some;
	if (n == NULL) {
		return MPI_ERR_NO_MEM;
	}
	int e = MPI_Comm_group(comm, &all);
	if (e == MPI_SUCCESS && (e = MPI_Group_incl(all, size, members, &some)) == MPI_SUCCESS) {
		e = MPI_Comm_create_group(comm, some, tag, &n->comm);
		MPI_Group_free(&some);
	}
	if (e == MPI_SUCCESS) {
		MPI_Group_free(&all);
		MPI_Comm_set_errhandler(n->comm, MPI_ERRORS_RETURN);
		MPI_Comm_rank(n->comm, &n->rank);
		MPI_Comm_size(n->comm, &n->size);
		for (int reach = 1; reach < n->size; reach *= 2) {
			n->rounds++;
		}
		*made = n;
	} else {
		free(n);
	}
	return e;
}

void native_free(native *n) {
	free(n->copy);
	MPI_Comm_free(&n->comm);
	free(n);
}

/* tell begins a round of the agreement: to the member 2^round further on goes what is known of those before it. */
static int tell(native *n) {
	int k = n->round, reach = 1 << k;
	agreement *a = &n->mine[k];
	if (k > 0) {
		memcpy(a->record, n->mine[0].record, RECORD_BYTES);
		a->all = n->mine[k - 1].all & n->theirs[k - 1].all;
		a->any = n->mine[k - 1].any | n->theirs[k - 1].any;
		a->places = n->mine[k - 1].places | n->theirs[k - 1].places;
	}
	int from = (n->rank - reach + n->size) % n->size, to = (n->rank + reach) % n->size;
	int e = MPI_Irecv(&n->theirs[k], sizeof *a, MPI_BYTE, from, k, n->comm, &n->receive);
	return e ? e : MPI_Isend(a, sizeof *a, MPI_BYTE, to, k, n->comm, &n->sends[k]);
}

/* input is what the collective reads. MPI wants all members in place or none, but for what only the root has: where
   they are not alike, those in place give a copy. places is the OR of all. */
static void *input(native *n, uint64_t places) {
	size_t size = (size_t)n->count * element_bytes(n->element);
	if (!n->in_place) {
		return (void *)n->src;
	}
	if (places != 3 || n->kind > 3) {
		return MPI_IN_PLACE;
	}
	if (n->kind == 3) {
		size *= n->size;
	}
	if ((n->copy = malloc(size + 1)) != NULL) {
		memcpy(n->copy, (void *)n->src, size);
	}
	return n->copy;
}

/* post starts the collective. */
static int post(native *n, uint64_t places) {
	MPI_Datatype t = element(n->element);
	MPI_Op o = operation(n->operation, n->element);
	void *dst = (void *)n->dst, *src = input(n, places);
	int count = n->count;
	if (n->in_place && src == NULL) {
		return MPI_ERR_NO_MEM;
	}
	MPI_Request *r = &n->collective;
	n->posted = 1;
	switch (n->kind) { /* schedule.Collective */
	case 0:
		return MPI_Iallreduce(src, dst, count, t, o, n->comm, r);
	case 1:
		return MPI_Ireduce_scatter_block(src, dst, count, t, o, n->comm, r);
	case 2:
		return MPI_Iallgather(src, count, t, dst, count, t, n->comm, r);
	case 3:
		return MPI_Ialltoall(src, count, t, dst, count, t, n->comm, r);
	case 4:
		return MPI_Ibcast(n->rank == n->root ? (void *)n->src : dst, count, t, n->root, n->comm, r);
	case 5:
		return MPI_Ireduce(src, dst, count, t, o, n->root, n->comm, r);
	case 6:
		return MPI_Igather(src, count, t, dst, count, t, n->root, n->comm, r);
	case 7: /* in place, the root's own part stays where it is */
		return n->in_place ? MPI_Iscatter((void *)n->src, count, t, MPI_IN_PLACE, count, t, n->root, n->comm, r)
		                   : MPI_Iscatter(src, count, t, dst, count, t, n->root, n->comm, r);
	}
	return MPI_ERR_ARG;
}

/* begin begins the agreement, and the collective if it is staged. */
static int begin(native *n) {
	n->fresh = n->round = n->agreed = n->differs = n->posted = n->over = n->failed = 0;
	n->mine[0].places = n->in_place ? 1 : 2;
	free(n->copy);
	n->copy = NULL;
	if (n->rounds > 0) {
		int e = tell(n);
		if (e != MPI_SUCCESS) {
			return e;
		}
	}
	n->agreed = n->rounds == 0;
	if (n->staged) { /* an error may be that of members who differ: the agreement has the say */
		n->failed = post(n, 2);
	}
	return MPI_SUCCESS;
}

/* go_on does what can be done without waiting. */
static int go_on(native *n) {
	int done = 0, e;
	while (!n->agreed && !n->differs) {
		if ((e = MPI_Test(&n->receive, &done, MPI_STATUS_IGNORE)) != MPI_SUCCESS) {
			return e;
		}
		if (!done) {
			return MPI_SUCCESS;
		}
		agreement *a = &n->mine[n->round], *b = &n->theirs[n->round];
		if (++n->round == n->rounds) {
			n->agreed = (a->all & b->all) == (a->any | b->any);
			n->differs = !n->agreed;
		} else if ((e = tell(n)) != MPI_SUCCESS) {
			return e;
		}
	}
	if (!n->agreed) {
		return MPI_SUCCESS;
	}
	if (n->failed != MPI_SUCCESS) {
		return n->failed;
	}
	if (!n->posted) {
		agreement *a = &n->mine[0];
		if (n->rounds > 0) {
			a = &n->mine[n->rounds - 1];
		}
		if ((e = post(n, a->places | (n->rounds > 0 ? n->theirs[n->rounds - 1].places : 0))) != MPI_SUCCESS) {
			return e;
		}
	}
	if (!n->over) {
		if ((e = MPI_Test(&n->collective, &n->over, MPI_STATUS_IGNORE)) != MPI_SUCCESS) {
			return e;
		}
	}
	return MPI_SUCCESS;
}

/* all_sent tells whether the messages of the agreement are through, so that their memory is free. */
static int all_sent(native *n, int *sent) {
	int e = MPI_SUCCESS;
	*sent = 1;
	for (int k = 0; k < n->rounds && *sent && e == MPI_SUCCESS; k++) {
		e = MPI_Test(&n->sends[k], sent, MPI_STATUS_IGNORE);
	}
	return e;
}

/* native_poll goes on until the call is over, the members are seen to differ, or the time is over. It returns 1 when the
   call is over, 2 when the members differ, 0 when neither is known, and else -1 and leaves an error of MPI in over.
   A number in place of a pointer spares cgo's look at the memory behind it. */
int native_poll(uintptr_t of, int64_t nanoseconds, int yields) {
	native *n = (native *)of;
	waiting w = {0};
	int e = n->fresh ? begin(n) : MPI_SUCCESS;
	do {
		int sent = 0;
		if (e == MPI_SUCCESS) {
			e = go_on(n);
		}
		if (e == MPI_SUCCESS && n->agreed && n->over && (e = all_sent(n, &sent)) == MPI_SUCCESS && sent) {
			return 1;
		}
		if (e != MPI_SUCCESS) {
			n->over = e;
			return -1;
		}
		if (n->differs) {
			return 2;
		}
	} while (go_on_waiting(&w, nanoseconds, yields));
	return 0;
}
