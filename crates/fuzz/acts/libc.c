/* What libc keeps in static memory: environment, locale, time zone, generators, tables, lists of what to call at the end. */
#include "act.h"
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fenv.h>
#include <getopt.h>
#include <iconv.h>
#include <libgen.h>
#include <locale.h>
#include <math.h>
#include <netdb.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <syslog.h>
#include <time.h>
#include <wchar.h>

#undef FAMILY
#define FAMILY "libc"

extern char **environ;

MIXED(errno_left)
{
    say("was %d", errno);
    errno = 77;
}

DISTURB(env_set)
{
    SAY2("%ld %ld", setenv("HS_A", "changed", 1), setenv("HS_NEW", "new", 1));
    say("%d", putenv((char[]){"HS_PUT=put"}) != 0 || unsetenv("HS_PUT"));
}

DISTURB(env_unset)
{
    say_result("unset", unsetenv("HS_B"));
}

DISTURB(env_clear)
{
    say_result("clear", clearenv());
}

DISTURB(env_overwrite)
{
    char *value = getenv("HS_B");
    if (value && *value)
        *value = '!';
    say("%s", value ? value : "(none)");
}

DISTURB(env_replace)
{
    static char *own[] = {"HS_A=replaced", "ONLY=this", NULL};
    environ = own;
    say("replaced");
}

OBSERVE(env_show)
{
    for (char **variable = environ; variable && *variable; variable++)
        say("%s", *variable);
    const char *a = getenv("HS_A");
    say("HS_A %s", a ? a : "(unset)");
}

DISTURB(locale_set)
{
    const char *now = setlocale(LC_ALL, "C.UTF-8");
    say("%s", now ? now : "(none)");
}

DISTURB(locale_of_environment)
{
    const char *now = setlocale(LC_ALL, "");
    say("%s", now ? now : "(none)");
}

DISTURB(locale_used)
{
    locale_t own = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    say("global %d", uselocale(own) == LC_GLOBAL_LOCALE);
}

OBSERVE(locale_show)
{
    wchar_t wide = 0;
    mbstate_t state = {0};
    say("%s own %d", setlocale(LC_ALL, NULL), uselocale((locale_t)0) != LC_GLOBAL_LOCALE);
    say("length %zd max %zu", (ssize_t)mbrtowc(&wide, "\xc3\xbc", 2, &state), MB_CUR_MAX);
}

MIXED(locale_state)
{
    wchar_t wide = 0;
    say("%d", (int)mbrtowc(&wide, "\xc3", 1, NULL));
    say("initial %d", mblen(NULL, 0));
}

DISTURB(zone_set)
{
    setenv("TZ", "XYZ-5", 1);
    tzset();
    say("%s", tzname[0]);
}

OBSERVE(zone_show)
{
    const time_t moment = 86400;
    struct tm *then = localtime(&moment);
    say("hour %d zone %s offset %ld light %d", then->tm_hour, then->tm_zone, timezone, daylight);
    say("%s", asctime(gmtime(&moment)));
}

OBSERVE(zone_names)
{
    say("%s %s", tzname[0], tzname[1]);
}

MIXED(random_rand)
{
    say("%d", rand());
}

DISTURB(random_seed)
{
    srand(5), srandom(6), srand48(7);
    say("seeded");
}

MIXED(random_others)
{
    static char state[64];
    SAY2("%ld %ld", random(), lrand48());
    initstate(3, state, sizeof state);
    say("%ld", random());
}

MIXED(token_static)
{
    static char text[] = "a b c d e f g h i j k l m";
    static int begun;
    char *token = strtok(begun ? NULL : text, " ");
    begun = 1;
    say("%s", token ? token : "(end)");
}

MIXED(options_parse)
{
    char *arguments[] = {"x", "-a", "-b", "value", "rest", NULL};
    int option = getopt(5, arguments, "ab:");
    say("option %d optind %d", option, optind);
}

MIXED(name_temporary)
{
    char *name = tempnam(".", "acts");
    say("%d", name && access(name, F_OK) != 0);
    free(name);
}

MIXED(text_errors)
{
    say("%s|%s|%s", strerror(2), strerror(9999), strsignal(99));
}

MIXED(text_address)
{
    char *first = inet_ntoa((struct in_addr){0x01020304});
    say("%s", first);
    say("same buffer %d", first == inet_ntoa((struct in_addr){0x05060708}));
}

MIXED(table_hash)
{
    ENTRY item = {"key", "value"};
    int made = hcreate(10);
    say("made %d had %d", made, hsearch(item, FIND) != NULL);
    hsearch(item, ENTER);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

MIXED(table_tree)
{
    static void *root;
    say("had %d", tfind("key", &root, by_text) != NULL);
    tsearch("key", &root, by_text);
}

MIXED(log_mask)
{
    say("was %x", (unsigned)setlogmask(LOG_MASK(LOG_ERR)));
    openlog("fuzz", LOG_PERROR, LOG_USER);
    syslog(LOG_DEBUG, "not to be seen");
}

DISTURB(log_written)
{
    openlog("fuzz", LOG_PERROR | LOG_NDELAY, LOG_USER);
    syslog(LOG_ERR, "an error");
    say("logged");
}

MIXED(users_next)
{
    struct passwd *entry = getpwent();
    say("%s", entry ? entry->pw_name : "(none)");
}

MIXED(users_find)
{
    struct passwd *entry = getpwuid(0);
    say("%s", entry ? entry->pw_name : "(none)");
}

MIXED(service_find)
{
    struct servent *entry = getservbyname("http", "tcp");
    say("%d", entry ? ntohs((uint16_t)entry->s_port) : -1);
}

MIXED(convert_characters)
{
    char from[] = "\xe4\xf6", to[8] = "", *in = from, *out = to;
    size_t left = 2, room = 7;
    iconv_t conversion = iconv_open("UTF-8", "ISO-8859-1");
    if (conversion == (iconv_t)-1)
        return say_result("iconv_open", -1);
    SAY2("%ld %ld", iconv(conversion, &in, &left, &out, &room), room);
    iconv_close(conversion);
}

MIXED(regex_match)
{
    regex_t pattern;
    regmatch_t match;
    int made = regcomp(&pattern, "b+c", REG_EXTENDED);
    SAY3("%ld %ld %ld", made, regexec(&pattern, "aabbc", 1, &match, 0), match.rm_so);
    regfree(&pattern);
}

MIXED(library_opened)
{
    void *library = dlopen("libutil.so.1", RTLD_NOW);
    say("opened %d", library != NULL);
}

MIXED(library_closed)
{
    void *there = dlopen("libutil.so.1", RTLD_NOW | RTLD_NOLOAD), *library = dlopen("libutil.so.1", RTLD_NOW);
    say("was there %d opened %d closed %d", there != NULL, library != NULL, library ? dlclose(library) : -1);
}

MIXED(library_error)
{
    const char *before = dlerror();
    say("before %d", before != NULL);
    dlopen("libabsent.so.9", RTLD_NOW);
}

OBSERVE(library_symbols)
{
    SAY2("%ld %ld", dlsym(RTLD_DEFAULT, "malloc") != NULL, dlsym(RTLD_DEFAULT, "no_such_function") != NULL);
}

MIXED(gamma_sign)
{
    say("was %d", signgam);
    say("%d", lgamma(-0.5) > 0);
}

DISTURB(name_of_program)
{
    program_invocation_name = "renamed";
    say("renamed");
}

OBSERVE(name_of_program_show)
{
    say("%s %s", program_invocation_name, program_invocation_short_name);
}

MIXED(text_paths)
{
    char path[] = "/a/b/c";
    say("%s", basename(path));
    say("%s", dirname(path));
}

MIXED(number_texts)
{
    int point, sign;
    say("%s %s", ecvt(3.25, 4, &point, &sign), l64a(1000000));
}

DISTURB(rounding_up)
{
    SAY2("%ld raise %ld", fesetround(FE_UPWARD), feraiseexcept(FE_DIVBYZERO | FE_INEXACT));
}

DISTURB(exceptions_trapped)
{
    say("was %x", (unsigned)feenableexcept(FE_OVERFLOW));
}

OBSERVE(rounding_show)
{
    volatile double third = 1.0;
    third /= 3.0;
    SAY2("mode %ld traps %lx", fegetround(), (unsigned)fegetexcept());
    say("third %a", third);
}

OBSERVE(exceptions_show)
{
    say("%x", (unsigned)fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID));
}

static void at_end_text(void)
{
    static const char text[] = "called at the end\n";
    RAW(SYS_write, 1, text, sizeof text - 1);
}

static void on_end_status(int status, void *what)
{
    char line[64];
    int length = snprintf(line, sizeof line, "on exit %d %s\n", status, (char *)what);
    RAW(SYS_write, 1, line, length);
}

DISTURB(at_exit)
{
    say("%d", atexit(at_end_text));
}

DISTURB(at_exit_with_status)
{
    say("%d", on_exit(on_end_status, "argument"));
}

DISTURB(at_quick_exit_too)
{
    say("%d", at_quick_exit(at_end_text));
}

static void at_end_again(void)
{
    atexit(at_end_text);
}

DISTURB(at_exit_nested)
{
    say("%d", atexit(at_end_again));
}
