/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches, whose kernels have the truth about their call path in their name.
 *
 * A name is KERNEL$$TOKENS. The tokens say which path a backward launch belongs to. They are joined
 * by dots, outermost first:
 * - 12: line 12 of the user's Python file, from Python's own C interface
 * - user_layer: a function of a C++ program, from user_place
 * - b$NAME: in the backward function of this node; the place of its forward function is before (%
 *   replaces an angle bracket)
 * - v$NAME: the same, but the forward function launched nothing
 * - r: in a function that a checkpoint runs again; the place of the checkpoint is before
 */
#ifndef STANDIN_TRUTH_H
#define STANDIN_TRUTH_H

#include <memory>
#include <string>

#include "node.h"

namespace standin
{
/* Names the user's file, whose lines are tokens. */
void set_user_file(const char *path);

/* A function of the user's C++ program, while it runs. */
struct user_place {
	explicit user_place(const char *name);
	~user_place();
	user_place(const user_place &) = delete;
	user_place &operator=(const user_place &) = delete;
};

/* The tokens of the calling thread now. */
std::string here();

/* Replaces the tokens of all callers until its end. */
struct base_place {
	explicit base_place(std::string tokens);
	~base_place();
	base_place(const base_place &) = delete;
	base_place &operator=(const base_place &) = delete;
};

/* The forward function of a node, while it runs. NULL: of a function without a node. */
struct forward_scope {
	explicit forward_scope(torch::autograd::Node *node);
	~forward_scope();
	forward_scope(const forward_scope &) = delete;
	forward_scope &operator=(const forward_scope &) = delete;

	torch::autograd::Node *outer;
};

/* Launches a kernel in the thread's stream. Aborts if CUDA fails. */
void launch(const char *kernel, int device);

/* Gives the thread a state of Python, if there is Python in this process. */
void init_python_thread();

/* Aborts if a call of CUDA failed. */
void check(CUresult result);
CUstream new_stream();
void use_device(int device);
} // namespace standin

#endif
