// newlocale of "C" takes no memory in glibc and musl: both hand out their own constant one.
#include <warptone/number.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

double wt_number_read(const char *text, char **end)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const double value = strtod_l(text, end, plain);
    freelocale(plain);
    return value;
}

int wt_number_write(char *text, size_t size, int digits, double value)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain);
    const int length = snprintf(text, size, "%.*g", digits, value);
    uselocale(before);
    freelocale(plain);
    return length;
}
