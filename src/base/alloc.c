#include "base/alloc.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The size of a huge page on x86-64, and on arm64 with pages of 4 KiB. */
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static atomic_uint_fast64_t n_allocations;
static atomic_uint_fast64_t fail_at; /* absolute number of the allocation that fails; 0: none */
static atomic_uint_fast64_t window_start;
static atomic_bool did_fail;

/* Counts one allocation; false when it is the one that a test wants to fail. */
static bool admit(void)
{
	uint64_t n = atomic_fetch_add_explicit(&n_allocations, 1, memory_order_relaxed) + 1;
	uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);

	if (at != 0 && n == at) {
		atomic_store(&did_fail, true);
		return false;
	}
	return true;
}

/* Bytes held now and at most; what malloc gave, which is a little more than was
 * asked for. */
static atomic_int_fast64_t live_bytes, peak_bytes;

static void *account(void *p)
{
	int64_t live, peak;

	if (!p)
		return NULL;
	live = (int64_t)malloc_usable_size(p);
	live += atomic_fetch_add_explicit(&live_bytes, live, memory_order_relaxed);
	peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
	while (live > peak && !atomic_compare_exchange_weak_explicit(&peak_bytes, &peak, live, memory_order_relaxed,
								     memory_order_relaxed))
		continue;
	return p;
}

int64_t rg_alloc_live_bytes(void)
{
	return atomic_load(&live_bytes);
}

int64_t rg_alloc_peak_bytes(bool restart)
{
	return restart ? atomic_exchange(&peak_bytes, atomic_load(&live_bytes)) : atomic_load(&peak_bytes);
}

uint64_t rg_alloc_count(void)
{
	return atomic_load(&n_allocations);
}

uint64_t rg_alloc_fail_at(uint64_t n)
{
	uint64_t now = atomic_load(&n_allocations);
	uint64_t seen = now - atomic_exchange(&window_start, now);

	atomic_store(&did_fail, false);
	atomic_store(&fail_at, n ? now + n : 0);
	return seen;
}

bool rg_alloc_did_fail(void)
{
	return atomic_load(&did_fail);
}

void *rg_alloc(size_t size_bytes)
{
	return admit() ? account(malloc(size_bytes ? size_bytes : 1)) : NULL;
}

void *rg_calloc(size_t count, size_t size_bytes)
{
	size_t total;

	/* calloc checks as well, but a sanitizer's ends the program over it. */
	if (__builtin_mul_overflow(count, size_bytes, &total) || !admit())
		return NULL;
	return account(calloc(total ? total : 1, 1));
}

void *rg_realloc_array(void *old, size_t count, size_t size_bytes)
{
	int64_t before = old ? (int64_t)malloc_usable_size(old) : 0;
	size_t total;
	void *p;

	if (__builtin_mul_overflow(count, size_bytes, &total) || !admit())
		return NULL;
	p = realloc(old, total ? total : 1);
	if (p)
		atomic_fetch_sub_explicit(&live_bytes, before, memory_order_relaxed);
	return account(p);
}

char *rg_strndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = rg_alloc(len + 1);

	if (p) {
		memcpy(p, s, len);
		p[len] = '\0';
	}
	return p;
}

char *rg_strdup(const char *s)
{
	return rg_strndup(s, strlen(s));
}

char *rg_asprintf(const char *fmt, ...)
{
	va_list ap, again;
	char *p = NULL;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len >= 0)
		p = rg_alloc((size_t)len + 1);
	if (p)
		vsnprintf(p, (size_t)len + 1, fmt, again);
	va_end(again);
	return p;
}

void *rg_alloc_aligned(size_t align_bytes, size_t size_bytes)
{
	bool huge = size_bytes >= 2 * HUGE_PAGE_BYTES;
	void *p = NULL;

	if (align_bytes < sizeof(void *))
		align_bytes = sizeof(void *);
	if (huge && align_bytes < HUGE_PAGE_BYTES)
		align_bytes = HUGE_PAGE_BYTES;
	if (!admit() || posix_memalign(&p, align_bytes, size_bytes ? size_bytes : 1) != 0)
		return NULL;
	/* Whole pages only, so that no byte more is used. Where it is refused, small ones do. */
	if (huge)
		madvise(p, size_bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES, MADV_HUGEPAGE);
	return account(p);
}

void rg_free(void *p)
{
	if (p)
		atomic_fetch_sub_explicit(&live_bytes, (int64_t)malloc_usable_size(p), memory_order_relaxed);
	free(p);
}

void *rg_grow(void *old, size_t *capacity, size_t need, size_t size_bytes)
{
	size_t cap = *capacity;
	void *p;

	if (need <= cap && old)
		return old;
	cap = cap < 8 ? 8 : cap + cap / 2;
	if (cap < need)
		cap = need;
	p = rg_realloc_array(old, cap, size_bytes);
	if (p)
		*capacity = cap;
	return p;
}
