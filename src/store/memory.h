/* SQLite's heap through base/alloc.h. Call once, before SQLite is first used. */
#ifndef RG_STORE_MEMORY_H
#define RG_STORE_MEMORY_H

void rg_store_use_our_heap(void);

#endif
