#include <warptone/names.h>

#include <string.h>

// Levenshtein distance, names cut at 63 bytes.
static int edit_distance(const char *a, const char *b)
{
    int row[64], n = (int)strnlen(b, 63);
    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n];
}

const char *wt_nearest_name(const char *name, const char *const *names, int n_names)
{
    const char *nearest = "";
    int best = 1 << 30;
    for (int k = 0; k < n_names; k++) {
        int distance = edit_distance(name, names[k]);
        if (distance < best) best = distance, nearest = names[k];
    }
    return nearest;
}
