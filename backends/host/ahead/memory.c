/* Memory that Numba's functions allocate for arrays of their own: counted by whoever holds it, and freed by the last.
   The names and the layout are those that Numba's code expects; its own version of them is part of Python. */

#include <stdlib.h>
#include <string.h>

/* (The code counts holders at the beginning, and reads the address of the data.) */
typedef struct {
    size_t holders;
    void *ending, *told;
    void *data;
    size_t size;
    void *allocator;
} Counted;

void *
NRT_MemInfo_alloc_aligned(size_t size, unsigned align)
{
    size_t step = align < 64 ? 64 : align, head = (sizeof(Counted) + step - 1) / step * step;
    void *made = NULL;
    if (size > (size_t)1 << 62 || posix_memalign(&made, step, head + size))
        return NULL;
    Counted *counted = made;
    memset(counted, 0, sizeof *counted);
    counted->holders = 1;
    counted->data = (char *)made + head;
    counted->size = size;
    return counted;
}

void *
NRT_MemInfo_alloc_safe_aligned(size_t size, unsigned align)
{
    return NRT_MemInfo_alloc_aligned(size, align);
}

void
NRT_MemInfo_call_dtor(void *counted)
{
    free(counted);
}
