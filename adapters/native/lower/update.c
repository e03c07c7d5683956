#include <string.h>

#include "adapters/native/kernels/weight_repack.h"
#include "adapters/native/lower/lower.h"

/*
 * The update of all parameters, and the copies of weights in the layouts that other primitives
 * want: it writes them, too, while the new weights are in the innermost cache.
 *
 * It is one command at the end of the step: with each large parameter updated right behind the last
 * command that reads its old value, steps were no faster (docs/native.md).
 */

/* Elements that are updated before the tiles within them are copied: with gradient, state and
 * copies they stay in a cache of 32 KiB. */
#define PIECE_ELEMENTS 1024

#define COPIES (sizeof(((struct parameter *)NULL)->copies) / sizeof(int))

/* A copy of a parameter; floats from the beginning of the regions. */
struct update_copy {
	size_t from, to;
	struct tile_shape shape;
};

/* Elements [begin, end) of the region of parameters, and the tiles that lie in them. */
struct update_piece {
	size_t begin, end;
	const struct tile *tiles;
	size_t tile_count;
};

struct update_list {
	struct update_piece *pieces;
	size_t count, elements;
	const struct update_copy *copies; /* of all parameters */
};

struct update_share {
	const struct program *program;
	const struct update_list *list;
};

static void share_update(void *data, size_t first, size_t end)
{
	const struct update_share *share = data;
	const struct program *program = share->program;
	float *w = (float *)(void *)program->parameters, *v = (float *)(void *)program->state;
	float *copies = (float *)(void *)program->lasting;
	const float *g = (const float *)(void *)program->gradients;

	for (; first < end; first++) {
		const struct update_piece *piece = &share->list->pieces[first];
		size_t at = piece->begin;

		program->update(w + at, v ? v + at : NULL, g + at, &program->rule, piece->end - at);
		for (size_t i = 0; i < piece->tile_count; i++) {
			const struct tile *tile = &piece->tiles[i];
			const struct update_copy *copy = &share->list->copies[tile->copy];

			program->copy_tile(copies + copy->to + tile->to,
					   w + copy->from + tile->from, &copy->shape, tile->rows,
					   tile->columns);
		}
	}
}

static void run_update(struct program *program, const struct command *command)
{
	struct update_share share = {.program = program, .list = command->detail};

	onednn_split(program->dnn, lower_threads(program, command->elements), share.list->count,
		     share_update, &share);
}

/* False where the layout is no blocks of fp32. */
static bool describe(const struct lowering *l, const_dnnl_memory_desc_t desc, struct blocked *out)
{
	const struct onednn *dnn = l->dnn;
	const dnnl_dims_t *padded = NULL, *strides = NULL, *sizes = NULL, *dims = NULL;

	*out = (struct blocked){.rank = lower_rank(l, desc)};
	if (onednn_type(dnn, desc) != dnnl_f32 ||
	    dnn->memory_desc_query(desc, dnnl_query_strides, &strides) ||
	    dnn->memory_desc_query(desc, dnnl_query_padded_dims, &padded) ||
	    dnn->memory_desc_query(desc, dnnl_query_inner_nblks_s32, &out->blocks) ||
	    dnn->memory_desc_query(desc, dnnl_query_inner_blks, &sizes) ||
	    dnn->memory_desc_query(desc, dnnl_query_inner_idxs, &dims))
		return false;
	for (int d = 0; d < out->rank; d++) {
		out->padded[d] = (*padded)[d];
		out->strides[d] = (*strides)[d];
	}
	for (int i = 0; i < out->blocks; i++) {
		out->block_size[i] = (*sizes)[i];
		out->block_dim[i] = (int)(*dims)[i];
	}
	return true;
}

static bool make_tiling(const struct lowering *l, const_dnnl_memory_desc_t from,
			const_dnnl_memory_desc_t to, struct tiling *out)
{
	struct blocked source, target;

	return describe(l, from, &source) && describe(l, to, &target) &&
	       tiling_make(out, &source, &target);
}

/* Whether weights can be kept in that layout from step to step: nobody changes them, or who does
 * can write the copy. */
static bool can_last(const struct lowering *l, const_dnnl_memory_desc_t own,
		     const_dnnl_memory_desc_t desc)
{
	struct tiling tiling;

	if (l->recipe->stage == STAGE_TRAIN)
		return (size_t)l->parameter_count * COPIES < UINT16_MAX &&
		       make_tiling(l, own, desc, &tiling);
	return lower_rank(l, own) == lower_rank(l, desc) &&
	       memcmp(lower_dims(l, own), lower_dims(l, desc),
		      (size_t)lower_rank(l, own) * sizeof(int64_t)) == 0;
}

enum prony_status lower_weights(struct lowering *l, int value, const_dnnl_memory_desc_t desc,
				const char *name, int *out, struct error *err)
{
	struct parameter *parameter = lower_find_parameter(l, value);
	const_dnnl_memory_desc_t own = l->program->operands[parameter->operand].desc;
	size_t i = 0;
	enum prony_status status;

	for (; i < COPIES && parameter->copies[i] != OPERAND_NONE; i++) {
		*out = parameter->copies[i];
		if (l->dnn->memory_desc_equal(l->program->operands[*out].desc, desc))
			return PRONY_OK;
	}
	if (i < COPIES && !l->dnn->memory_desc_equal(own, desc) && can_last(l, own, desc))
		status = program_operand(l->program, desc, REGION_LASTING, out, err);
	else
		status = lower_as(l, parameter->operand, desc, name, out, err);
	if (status == PRONY_OK && i < COPIES && *out != parameter->operand)
		parameter->copies[i] = *out;
	return status;
}

enum prony_status lower_refresh_copies(const struct lowering *l, const struct parameter *parameter,
				       struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; status == PRONY_OK && i < COPIES; i++) {
		int copy = parameter->copies[i];

		if (copy != OPERAND_NONE && l->program->operands[copy].region == REGION_LASTING)
			status = program_load(l->program, copy,
					      l->program->operands[parameter->operand].desc,
					      l->program->operands[parameter->operand].data, err);
	}
	return status;
}

/* The tiles of all lasting copies of a parameter, in order; adds the copies to `copies`. */
static struct tile *list_tiles(const struct lowering *l, const struct parameter *parameter,
			       struct update_copy *copies, size_t *copy_count, size_t *tile_count)
{
	const struct operand *own = &l->program->operands[parameter->operand];
	struct tiling tilings[COPIES];
	size_t first = *copy_count, used = 0;
	struct tile *tiles;

	*tile_count = 0;
	for (size_t i = 0; i < COPIES && parameter->copies[i] != OPERAND_NONE; i++) {
		const struct operand *to = &l->program->operands[parameter->copies[i]];
		struct tiling *tiling = &tilings[*copy_count - first];

		if (to->region != REGION_LASTING || !make_tiling(l, own->desc, to->desc, tiling))
			continue;
		copies[(*copy_count)++] = (struct update_copy){
			own->offset / sizeof(float), to->offset / sizeof(float), tiling->shape};
		*tile_count += tiling_count(tiling);
	}
	tiles = arena_array(&l->program->arena, *tile_count + 1, sizeof(*tiles));
	for (size_t i = first; i < *copy_count; i++) {
		tiling_list(&tilings[i - first], (uint16_t)i, tiles + used);
		used += tiling_count(&tilings[i - first]);
	}
	tiles_sort(tiles, used);
	return tiles;
}

/* Cuts a parameter into pieces such that no tile lies in two. */
static void add_pieces(const struct lowering *l, const struct parameter *parameter,
		       const struct tile *tiles, size_t tile_count, struct update_list *list)
{
	const struct operand *own = &l->program->operands[parameter->operand];
	size_t begin = own->offset / sizeof(float), end = begin + own->bytes / sizeof(float);
	size_t first = 0, reach = 0, at = begin;

	for (size_t i = 0; i < tile_count; i++) {
		size_t from = begin + tiles[i].from,
		       last = begin + tile_end(&tiles[i], &list->copies[tiles[i].copy].shape);

		if (from >= reach && from - at >= PIECE_ELEMENTS) {
			list->pieces[list->count++] =
				(struct update_piece){at, from, tiles + first, i - first};
			at = from;
			first = i;
		}
		reach = last > reach ? last : reach;
	}
	for (; tile_count == 0 && end - at > PIECE_ELEMENTS; at += PIECE_ELEMENTS)
		list->pieces[list->count++] =
			(struct update_piece){.begin = at, .end = at + PIECE_ELEMENTS};
	list->pieces[list->count++] =
		(struct update_piece){at, end, tiles + first, tile_count - first};
	list->elements += end - begin;
}

static void lower_rule(struct lowering *l)
{
	struct program *program = l->program;

	program->rule = (struct update_rule){
		.learning_rate = (float)l->recipe->learning_rate,
		.momentum = (float)l->recipe->momentum,
		.weight_decay = (float)l->recipe->weight_decay,
		.rho = (float)l->recipe->rho,
		.epsilon = (float)l->recipe->epsilon,
	};
	switch (l->recipe->optimiser) {
	case OPTIMISER_MOMENTUM:
		program->update = program->kernels->momentum;
		break;
	case OPTIMISER_RMSPROP:
		program->update = program->kernels->rmsprop;
		break;
	default:
		program->update = program->kernels->sgd;
	}
}

void lower_update(struct lowering *l)
{
	struct program *program = l->program;
	size_t parameters = (size_t)l->parameter_count, copy_count = 0;
	struct update_copy *copies =
		arena_array(&program->arena, parameters * COPIES + 1, sizeof(*copies));
	struct update_list *list = arena_array(&program->arena, 1, sizeof(*list));
	struct command *command = program_command(program, "all parameters", "update", 0);

	lower_rule(l);
	list->pieces = arena_array(&program->arena,
				   program->parameter_bytes / sizeof(float) / PIECE_ELEMENTS +
					   parameters + 1,
				   sizeof(*list->pieces));
	list->copies = copies;
	for (int i = 0; i < l->parameter_count; i++) {
		const struct parameter *parameter = &l->parameters[i];
		size_t tile_count;
		const struct tile *tiles =
			list_tiles(l, parameter, copies, &copy_count, &tile_count);

		add_pieces(l, parameter, tiles, tile_count, list);
	}
	command->kernel = run_update;
	command->elements = list->elements;
	command->detail = list;
}
