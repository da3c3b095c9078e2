/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library whose initialisation lasts as long as the program wants.
 */
void client_is_loading(void);

__attribute__((constructor)) static void be_loaded(void)
{
	client_is_loading();
}
