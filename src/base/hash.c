#include "base/hash.h"

#include <nettle/sha2.h>
#include <stdint.h>

#include "base/alloc.h"

struct rg_sha256 {
	struct sha256_ctx ctx;
};

struct rg_sha256 *rg_sha256_new(void)
{
	struct rg_sha256 *h = rg_alloc(sizeof(*h));

	if (h)
		sha256_init(&h->ctx);
	return h;
}

void rg_sha256_add(struct rg_sha256 *h, const void *data, size_t size_bytes)
{
	sha256_update(&h->ctx, size_bytes, data);
}

void rg_sha256_finish(struct rg_sha256 *h, char hex[65])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t d[SHA256_DIGEST_SIZE];

	sha256_digest(&h->ctx, sizeof(d), d);
	for (size_t i = 0; i < sizeof(d); i++) {
		hex[2 * i] = digits[d[i] >> 4];
		hex[2 * i + 1] = digits[d[i] & 15];
	}
	hex[64] = '\0';
	rg_free(h);
}

void rg_sha256_free(struct rg_sha256 *h)
{
	rg_free(h);
}
