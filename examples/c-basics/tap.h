/* Tests for C in a few lines. Results go to a file, so that what an answer prints is not taken for one. */
#include <stdio.h>
#include <string.h>

static FILE *results;
static int number, failures;

/* How many checks follow: fewer of them is a failure, however the program ends. */
static inline void plan(int checks)
{
    results = fopen("results.tap", "w");
    /* what was found out before a crash must be on disk */
    setvbuf(results, NULL, _IONBF, 0);
    fprintf(results, "1..%d\n", checks);
}

static inline int report(int holds, const char *name)
{
    fprintf(results, "%sok %d - %s\n", holds ? "" : "not ", ++number, name);
    failures += !holds;
    return holds;
}

static inline void check_number(long long got, long long expected, const char *name)
{
    if (!report(got == expected, name))
        fprintf(results, "# got %lld, expected %lld\n", got, expected);
}

static inline void check_text(const char *got, const char *expected, const char *name)
{
    if (!report(strcmp(got, expected) == 0, name))
        fprintf(results, "# got \"%.200s\", expected \"%.200s\"\n", got, expected);
}

#define NUMBER(expression, expected) check_number((expression), (expected), #expression " == " #expected)
#define TEXT(expression, expected) check_text((expression), (expected), #expression " is " #expected)
