/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU time by PyTorch module, from the frames "[module] PATH" of the call tree.
 *
 * Work belongs to the innermost module on its call path, and with submodules to each module on it.
 * A backward pass has the path of its forward line. Modules that it runs again have no path, only
 * one below their outermost class, so they are named "layers.3.<Block>.mlp".
 *
 * Layers are folded: "layers.3.mlp" becomes "layers.*.mlp". A last number stays if the module has
 * none inside, because "mlp.0" and "mlp.2" differ.
 */
#include "merge/lines/modules.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/naming/joined_paths.h"
#include "merge/steps/steps.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/run.h"
#include "merge/tables/table.h"

enum module_sum {
	SUM_ALL, /* GPU time of the three passes */
	SUM_FORWARD,
	SUM_BACKWARD,
	SUM_RECOMPUTE,
	SUM_COUNT, /* kernels, copies and memsets */
	SUM_STEPS, /* GPU time in the steps after the warm-up */
	SUMS,
	IS_MODULE /* a kind of frame; labels of passes are others */
};

struct module_row {
	const char *model;  /* class of the outermost module */
	const char *layer;  /* path, or class if it is the outermost one */
	const char *module; /* the same, folded */
	uint64_t layer_count;
	uint64_t own[SUMS], sums[SUMS]; /* without submodules, and with them */
	uint32_t folded;		/* of a layer: its row */
	bool has_inner;			/* a module inside has a path below it */
	uint32_t last; /* chain that was added last, because recursion counts once */
};

/* Rows by key: model and path, with a zero between them. */
struct module_rows {
	struct names keys;
	struct module_row *rows;
	size_t capacity;
};

/* A module inside others on call paths. */
struct chain {
	uint32_t outer;	   /* the chain outside; 0: none */
	uint32_t again;	   /* the chain of the outermost module that runs again; 0: none */
	uint32_t layer;	   /* its row */
	bool is_again;	   /* below a label */
	const char *model; /* name in the call tree */
	char *path;
	uint64_t own[SUMS];
};

struct modules {
	const struct paths *paths;
	const struct steps *steps; /* or NULL */
	struct module_rows layers, folded;
	struct names keys; /* of chains */
	struct chain *chains;
	size_t capacity;
};

static void add_node(uint64_t sums[SUMS], const struct path_node *node, enum module_sum pass)
{
	saturating_add(&sums[SUM_ALL], node->weights[WEIGHT_GPU_TIME]);
	saturating_add(&sums[pass], node->weights[WEIGHT_GPU_TIME]);
	saturating_add(&sums[SUM_COUNT], node->weights[WEIGHT_COUNT]);
}

char *module_folded(const char *path, bool has_inner)
{
	char *folded = xt_strdup(path), *to = folded;

	while (*path) {
		size_t digits = strspn(path, "0123456789"), part = strcspn(path, ".");

		if (digits && digits == part && (path[part] || has_inner))
			*to++ = '*';
		else
			to = mempcpy(to, path, part);
		path += part;
		if (*path)
			*to++ = *path++;
	}
	*to = '\0';
	return folded;
}

/* Finds or adds a row. */
static uint32_t row_of(struct module_rows *rows, const char *model, const char *path)
{
	char *key = xt_asprintf("%s%c%s", model, '\0', path);
	uint32_t count = rows->keys.count;
	uint32_t row = names_intern(&rows->keys, key, strlen(model) + 1 + strlen(path));

	free(key);
	xt_grow(rows->rows, rows->capacity, row + 1);
	if (row == count)
		rows->rows[row] = (struct module_row){0};
	return row;
}

/* Returns the path of a chain's module from that of its frame. The caller frees it. */
static char *path_of(const struct modules *modules, uint32_t self, const struct chain *chain,
		     const char *shown)
{
	const struct chain *outer = &modules->chains[chain->outer];

	if (!chain->again)
		return xt_strdup(shown);
	if (chain->again != self)
		return xt_asprintf("%s.%s", modules->chains[chain->again].path, shown);
	return xt_asprintf("%s%s<%s>", outer->outer ? outer->path : "", outer->outer ? "." : "",
			   shown);
}

/* Finds or adds the chain of a module's frame inside another chain. */
static uint32_t inner_chain(struct modules *modules, uint32_t outer, uint32_t frame, bool is_again)
{
	const uint32_t key[] = {outer, frame, is_again}, count = modules->keys.count;
	const uint32_t self = names_intern(&modules->keys, key, sizeof(key));
	const char *shown = names_text(&modules->paths->names, frame, NULL) + strlen(MODULE_MARK);
	struct chain chain = modules->chains[outer];

	if (self != count)
		return self;
	memset(chain.own, 0, sizeof(chain.own));
	chain.outer = outer;
	if (!outer)
		chain.model = shown;
	else if (is_again && !chain.is_again)
		chain.again = self;
	chain.is_again = is_again;
	chain.path = path_of(modules, self, &chain, shown);
	chain.layer = row_of(&modules->layers, chain.model, chain.path);
	if (outer && begins_with(chain.path, modules->chains[outer].path) &&
	    chain.path[strlen(modules->chains[outer].path)] == '.')
		modules->layers.rows[modules->chains[outer].layer].has_inner = true;
	xt_grow(modules->chains, modules->capacity, self + 1);
	modules->chains[self] = chain;
	return self;
}

/* Returns the pass below a label, IS_MODULE, or 0. */
static enum module_sum frame_kind(const char *name)
{
	return begins_with(name, MODULE_MARK)	       ? IS_MODULE
	       : begins_with(name, LABEL_ANY_BACKWARD) ? SUM_BACKWARD
	       : !strcmp(name, LABEL_RECOMPUTE)	       ? SUM_RECOMPUTE
						       : 0;
}

/* Finds the chain and the pass of each node, which comes after its parent. */
static void add_paths(struct modules *modules)
{
	const struct paths *paths = modules->paths;
	uint8_t *passes = xt_calloc(paths->node_count, 1);
	uint32_t *chains = xt_calloc(paths->node_count, sizeof(*chains));

	passes[PATH_ROOT] = SUM_FORWARD;
	for (uint32_t n = PATH_ROOT + 1; n < paths->node_count; n++) {
		const struct path_node *node = &paths->nodes[n];
		enum module_sum kind = frame_kind(names_text(&paths->names, node->name, NULL));

		passes[n] = kind && kind != IS_MODULE ? (uint8_t)kind : passes[node->parent];
		chains[n] = chains[node->parent];
		if (kind == IS_MODULE)
			chains[n] = inner_chain(modules, chains[n], node->name,
						passes[n] != SUM_FORWARD);
		if (!chains[n])
			continue;
		add_node(modules->chains[chains[n]].own, node, passes[n]);
		if (modules->steps && n < modules->steps->weights.capacity)
			saturating_add(&modules->chains[chains[n]].own[SUM_STEPS],
				       modules->steps->weights.list[n].gpu_ns);
	}
	free_all(passes, chains);
}

static void fold_layers(struct modules *modules)
{
	for (uint32_t l = 1; l < modules->layers.keys.count; l++) {
		struct module_row *layer = &modules->layers.rows[l];
		const char *model = names_text(&modules->layers.keys, l, NULL);
		char *path = module_folded(model + strlen(model) + 1, layer->has_inner);

		layer->folded = row_of(&modules->folded, model, path);
		modules->folded.rows[layer->folded].folded = layer->folded;
		modules->folded.rows[layer->folded].layer_count++;
		free(path);
	}
}

static void add_sums(uint64_t to[SUMS], const uint64_t more[SUMS])
{
	for (int s = 0; s < SUMS; s++)
		saturating_add(&to[s], more[s]);
}

static void add_chains(struct modules *modules)
{
	const struct chain *chains = modules->chains;

	for (uint32_t c = 1; c < modules->keys.count; c++)
		for (uint32_t at = c; at; at = chains[at].outer) {
			struct module_row *layer = &modules->layers.rows[chains[at].layer];
			struct module_row *rows[] = {layer, &modules->folded.rows[layer->folded]};

			for (int r = 0; r < 2; r++) {
				if (at == c)
					add_sums(rows[r]->own, chains[c].own);
				if (rows[r]->last != c)
					add_sums(rows[r]->sums, chains[c].own);
				rows[r]->last = c;
			}
		}
}

/* Texts have the order of the call tree. */
COMPARE_BY(compare_modules, struct module_row, DOWN(own[SUM_ALL]) DOWN(sums[SUM_ALL]) UP(layer))

/* Gives rows to a table, with copies of their texts behind them. */
static void give_rows(struct table_rows *rows, const struct modules *modules,
		      const struct module_rows *list)
{
	const struct names *folded = &modules->folded.keys, *keys = &list->keys;
	size_t count = keys->count - 1;
	struct module_row *given = rows->memory =
		xt_malloc(count * sizeof(*given) + folded->text_used + keys->text_used);
	char *texts = memcpy(given + count, folded->text, folded->text_used);
	char *layers = memcpy(texts + folded->text_used, keys->text, keys->text_used);

	for (uint32_t r = 0; r < count; r++) {
		struct module_row *row = &given[r];
		size_t model_bytes;

		*row = list->rows[r + 1];
		row->model = texts + (names_text(folded, row->folded, NULL) - folded->text);
		model_bytes = strlen(row->model) + 1;
		row->module = row->model + model_bytes;
		row->layer = layers + (names_text(keys, r + 1, NULL) - keys->text) + model_bytes;
	}
	qsort(given, count, sizeof(*given), compare_modules);
	table_records(rows, given, count);
}

static void open_modules(struct table_rows *rows)
{
	struct modules modules = {.paths = &rows->run->paths, .steps = steps_of(rows->run)};
	struct names *names[] = {&modules.keys, &modules.layers.keys, &modules.folded.keys};

	for (int n = 0; n < 3; n++)
		names_init(names[n]);
	xt_grow(modules.chains, modules.capacity, 1);
	modules.chains[0] = (struct chain){0};
	add_paths(&modules);
	fold_layers(&modules);
	add_chains(&modules);
	give_rows(rows, &modules,
		  rows->def == &table_module_layers ? &modules.layers : &modules.folded);
	for (uint32_t c = 1; c < modules.keys.count; c++)
		free(modules.chains[c].path);
	for (int n = 0; n < 3; n++)
		names_free(names[n]);
	free_all(modules.chains, modules.layers.rows, modules.folded.rows);
}

static void modules_put_row(struct table_rows *rows, struct cells *cells)
{
	const struct module_row *row = rows->record;
	const struct steps *steps = steps_of(rows->run);

	cells_put(cells,
		  steps ? cell_number(row->own[SUM_STEPS] / steps->steady.count) : CELL_ABSENT);
	cells_put(cells, cell_share(row->own[SUM_ALL], rows->run->sums->events.work.gpu_ns));
}

#define MODULES_TOP 3

#define SUM_COLUMNS                                                                                \
	COLUMN("own_gpu_time_ns", NS, FROM(module_row, own[SUM_ALL]),                              \
	       "GPU time without submodules: adds up to that of all modules",                      \
	       HEAD("own time", 12)),                                                              \
		COLUMN("own_step_ns", NS, OTHER, "of this: in a step after the warm-up, as mean",  \
		       OPTIONAL, HEAD("per step", 10)),                                            \
		COLUMN("share", SHARE, OTHER, "own time as part of all GPU time",                  \
		       HEAD("share", 7), TEXT_ONLY),                                               \
		COLUMN("own_forward_ns", NS, FROM(module_row, own[SUM_FORWARD]),                   \
		       "of this: forward pass", WIDE("forward", 12, 72)),                          \
		COLUMN("own_backward_ns", NS, FROM(module_row, own[SUM_BACKWARD]),                 \
		       "of this: backward pass", WIDE("backward", 12, 72)),                        \
		COLUMN("own_recompute_ns", NS, FROM(module_row, own[SUM_RECOMPUTE]),               \
		       "of this: forward work that a checkpoint runs again"),                      \
		COLUMN("own_count", COUNT, FROM(module_row, own[SUM_COUNT]),                       \
		       "kernels, copies and memsets without those of submodules"),                 \
		COLUMN("gpu_time_ns", NS, FROM(module_row, sums[SUM_ALL]),                         \
		       "GPU time with submodules", WIDE("with inner", 12, 100)),                   \
		COLUMN("forward_ns", NS, FROM(module_row, sums[SUM_FORWARD]),                      \
		       "of this: forward pass"),                                                   \
		COLUMN("backward_ns", NS, FROM(module_row, sums[SUM_BACKWARD]),                    \
		       "of this: backward pass"),                                                  \
		COLUMN("recompute_ns", NS, FROM(module_row, sums[SUM_RECOMPUTE]),                  \
		       "of this: forward work that a checkpoint runs again"),                      \
		COLUMN("count", COUNT, FROM(module_row, sums[SUM_COUNT]),                          \
		       "kernels, copies and memsets with those of submodules"),                    \
		COLUMN("model", TEXT, FROM(module_row, model), "class of the outermost module")

static const struct column_def folded_columns[] = {
	SUM_COLUMNS,
	COLUMN("layer_count", COUNT, FROM(module_row, layer_count), "modules in this row",
	       WIDE("layers", 8, 90)),
	COLUMN("module", TEXT, FROM(module_row, module),
	       "path, with `*` for numbers of layers, which are modules with others inside; "
	       "of the outermost module its class",
	       LAST("module")),
};

static const struct column_def layer_columns[] = {
	SUM_COLUMNS,
	COLUMN("module", TEXT, FROM(module_row, module), "its row in `modules`"),
	COLUMN("layer", TEXT, FROM(module_row, layer), "path of the module", LAST("module")),
};

#define SHOWN "own_step_ns own_gpu_time_ns share own_forward_ns own_backward_ns gpu_time_ns "

const struct table_def table_modules = {
	.name = "modules",
	.title = "GPU time by PyTorch module",
	.what = "GPU time by PyTorch module with layers folded, largest time of its own first.",
	HAS_COLUMNS(folded_columns),
	.shows = SHOWN "layer_count module",
	.json.is_complete = true,
	.open = open_modules,
	.row = modules_put_row,
};

static void open_top_modules(struct table_rows *rows)
{
	open_modules(rows);
	if (!rows->run->settings->tables.top_count)
		rows->count = smaller(rows->count, MODULES_TOP);
}

/* For text that has to be short. */
const struct table_def text_top_modules = {
	.name = "modules",
	.title = "Costliest PyTorch modules",
	HAS_COLUMNS(folded_columns),
	.shows = "own_step_ns own_gpu_time_ns share layer_count module",
	.open = open_top_modules,
	.row = modules_put_row,
};

const struct table_def table_module_layers = {
	.name = "module_layers",
	.title = "GPU time by PyTorch module of each layer",
	.what = "The rows of `modules` for each layer, largest time of its own first.",
	HAS_COLUMNS(layer_columns),
	.shows = SHOWN "layer",
	.json.is_complete = true,
	.json.rows_max = 5000,
	.open = open_modules,
	.row = modules_put_row,
};
