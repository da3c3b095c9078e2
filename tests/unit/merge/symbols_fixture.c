/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared object whose functions symbols_test looks up. The table has their addresses.
 */
#define EXPORTED __attribute__((visibility("default")))

int fixture_global(int a);
int fixture_weak(int a);
int _fixture_alias(int a);
int fixture_named_alias(int a);

static __attribute__((noinline)) int fixture_static(int a)
{
	return a * 3 + 1;
}

static inline __attribute__((always_inline)) int fixture_innermost(int a)
{
	return fixture_static(a) + 1;
}

static inline __attribute__((always_inline)) int fixture_inlined(int a)
{
	return fixture_innermost(a) + 1;
}

EXPORTED int fixture_global(int a)
{
	return fixture_inlined(a);
}

EXPORTED __attribute__((weak)) int fixture_weak(int a)
{
	return a - 5;
}

EXPORTED int _fixture_alias(int a)
{
	return a ^ 77;
}

EXPORTED int fixture_named_alias(int a) __attribute__((alias("_fixture_alias")));

/* Assembly without type or size, as in some libraries. */
__asm__(".text\n.local fixture_assembly\nfixture_assembly:\n\tnop\n\tnop\n\tret\n");
extern char fixture_assembly[] __attribute__((visibility("hidden")));

EXPORTED const void *const fixture_addresses[] = {
	(const void *)fixture_global,
	(const void *)fixture_static,
	(const void *)fixture_weak,
	(const void *)_fixture_alias,
	fixture_assembly,
};
