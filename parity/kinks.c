/* Records and decides the reference's comparisons that are too close to call. */
#include "parity/reference_internal.h"

#include <stdlib.h>

#include "base/memory.h"

static bool turns(struct kinks *kinks)
{
	int64_t number = kinks->count++;

	return number < kinks->decided ? kinks->decisions[number] : kinks->turn_all;
}

/* Beyond this number one comparison more or less makes no difference. */
#define KINKS_KEPT (INT64_C(1) << 22)

static void keep_kink(struct kink_list *list, const struct kink *kink)
{
	if (list->count >= KINKS_KEPT)
		return;
	if (list->count == list->capacity) {
		list->capacity = list->capacity ? 2 * list->capacity : 256;
		list->items =
			memory_realloc(list->items, (size_t)list->capacity * sizeof(*list->items));
	}
	list->items[list->count++] = *kink;
}

void kink_list_release(struct kink_list *list)
{
	free(list->items);
	*list = (struct kink_list){0};
}

static int compare_kinks(const struct kink *a, const struct kink *b)
{
	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

/* Binary search: steps, nodes and places were all met in ascending order. */
static const struct kink *find_kink(const struct kink_list *list, const struct kink *wanted)
{
	int64_t first = 0, end = list->count;

	while (first < end) {
		int64_t middle = first + (end - first) / 2;
		int order = compare_kinks(&list->items[middle], wanted);

		if (order == 0)
			return &list->items[middle];
		if (order < 0)
			first = middle + 1;
		else
			end = middle;
	}
	return NULL;
}

static int64_t decide(const struct kernel_call *call, int64_t place, int64_t decision,
		      int64_t other)
{
	struct kinks *kinks = call->kinks;
	struct kink kink = {.step = call->step,
			    .place = place,
			    .node = (int)(call->node - call->graph->nodes),
			    .decision = decision};

	if (kinks->turned) {
		const struct kink *found = find_kink(kinks->turned, &kink);

		kinks->count++;
		return found && found->decision == decision ? other : decision;
	}
	if (kinks->kept)
		keep_kink(kinks->kept, &kink);
	return turns(kinks) ? other : decision;
}

static bool turn(const struct kernel_call *call)
{
	return turns(call->kinks);
}

const struct kernel_hooks kinks_hooks = {
	.decide = decide,
	.turn = turn,
	.round_value = rounding_of_value,
	.round_sum = rounding_of_sum,
};
