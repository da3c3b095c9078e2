/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is being loaded for as long as the program likes. */
void client_is_loading(void);

__attribute__((constructor)) static void be_loaded(void)
{
	client_is_loading();
}
