#include <warptone/names.h>

#include <stdio.h>
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

// The escape of the character at `text`, or "" where it is none; `bytes` of it.
static void escape(const unsigned char *text, char out[8], size_t *bytes)
{
    out[0] = 0, *bytes = 1;
    if (*text == '\n') snprintf(out, 8, "\\n");
    else if (*text == '\t') snprintf(out, 8, "\\t");
    else if (*text < 0x20 || *text == 0x7f) snprintf(out, 8, "\\x%02x", *text);
    else if (*text == 0xc2 && text[1] >= 0x80 && text[1] < 0xa0) snprintf(out, 8, "\\u%04x", text[1]), *bytes = 2;
}

char *wt_show_text(const char *text, char *shown, size_t size)
{
    size_t n = 0, bytes;
    for (const unsigned char *at = (const unsigned char *)text; *at && size; at += bytes) {
        char word[8];
        escape(at, word, &bytes);
        if (!word[0]) word[0] = (char)*at, word[1] = 0;
        const size_t length = strlen(word);
        if (length >= size - n) break;
        memcpy(shown + n, word, length), n += length;
    }
    if (size) shown[n] = 0;
    return shown;
}
