/* Between the files of the framework that is none. */
#ifndef FAULTLINE_SCENARIOS_H
#define FAULTLINE_SCENARIOS_H

void *stub_stream(int i);
void until_idle(void);
void products(void);
void many_products(void);
void bench(void);

#endif
