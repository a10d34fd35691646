/* Arguments, environment and streams. See before.h. */
#include "before.h"

#ifdef WITH_before_env
static char first_value[64];
CONSTRUCT(ask_env)
{
    UNUSED;
    const char *value = getenv("HS_A");
    snprintf(first_value, sizeof first_value, "%s", value ? value : "(unset)");
}
TELL(before_env)
{
    say("%s", first_value);
}
#endif

#ifdef WITH_before_env_kept
static char *kept_value;
CONSTRUCT(keep_env)
{
    UNUSED;
    kept_value = getenv("HS_A");
}
TELL(before_env_kept)
{
    say("%s", kept_value ? kept_value : "(unset)");
}
#endif

#ifdef WITH_before_env_hidden
/* As one that is kept in another form. */
static uintptr_t hidden_value;
CONSTRUCT(hide_env)
{
    UNUSED;
    hidden_value = (uintptr_t)getenv("HS_A") ^ 0x5555;
}
TELL(before_env_hidden)
{
    const char *value = (const char *)(hidden_value ^ 0x5555);
    say("%s", value ? value : "(unset)");
}
#endif

#ifdef WITH_before_env_flag
static int flag_set;
CONSTRUCT(ask_env_flag)
{
    UNUSED;
    const char *value = secure_getenv("HS_B");
    flag_set = value && *value == 'x';
}
TELL(before_env_flag)
{
    say("%d", flag_set);
}
#endif

#ifdef WITH_before_env_walk
extern char **environ;
static int variables, has_b;
CONSTRUCT(walk_env)
{
    UNUSED;
    for (char **variable = environ; *variable; variable++) {
        variables++;
        has_b |= !strncmp(*variable, "HS_B=", 5);
    }
}
TELL(before_env_walk)
{
    say("%d has %d", variables, has_b);
}
#endif

#ifdef WITH_before_env_given
static int given_variables;
CONSTRUCT(count_given)
{
    (void)argc, (void)argv;
    while (envp[given_variables])
        given_variables++;
}
TELL(before_env_given)
{
    say("%d", given_variables);
}
#endif

#ifdef WITH_before_env_by_proc
static char proc_environment[2048];
CONSTRUCT(read_environ)
{
    UNUSED;
    int got = slurp("/proc/self/environ", proc_environment, sizeof proc_environment);
    for (int i = 0; i < got - 1; i++)
        if (!proc_environment[i])
            proc_environment[i] = '|';
}
TELL(before_env_by_proc)
{
    say("%s", proc_environment);
}
#endif

#ifdef WITH_before_env_set
CONSTRUCT(set_env)
{
    UNUSED;
    setenv("HS_C", "by constructor", 0);
}
TELL(before_env_set)
{
    const char *value = getenv("HS_C");
    say("%s", value ? value : "(unset)");
}
#endif

#ifdef WITH_before_arguments
static int argument_count;
static size_t argument_length;
CONSTRUCT(count_arguments)
{
    (void)envp;
    argument_count = argc;
    for (int i = 0; i < argc; i++)
        argument_length += strlen(argv[i]);
}
TELL(before_arguments)
{
    say("%d of %zu", argument_count, argument_length);
}
#endif

#ifdef WITH_before_arguments_kept
static char **kept_arguments;
CONSTRUCT(keep_arguments)
{
    (void)argc, (void)envp;
    kept_arguments = argv;
}
TELL(before_arguments_kept)
{
    say("%s", kept_arguments[0] ? kept_arguments[0] : "(none)");
    for (int i = 1; kept_arguments[0] && kept_arguments[i]; i++)
        say("%s", kept_arguments[i]);
}
#endif

#ifdef WITH_before_arguments_counted
static int counted_arguments;
static struct {
    long count;
    char **list;
} both_arguments;
CONSTRUCT(note_arguments)
{
    (void)envp;
    counted_arguments = argc;
    both_arguments.count = argc;
    both_arguments.list = argv;
}
TELL(before_arguments_counted)
{
    say("%d", counted_arguments);
    for (long i = 0; i < both_arguments.count; i++)
        say("%s", both_arguments.list[i] ? both_arguments.list[i] : "(none)");
    counted_arguments = -1;
    both_arguments.count = 7;
}
#endif

#ifdef WITH_before_arguments_bounded
static int few_arguments, has_arguments;
CONSTRUCT(bound_arguments)
{
    (void)argv, (void)envp;
    few_arguments = argc < 3 ? argc : 3;
    has_arguments = argc > 1;
}
TELL(before_arguments_bounded)
{
    say("%d %d", few_arguments, has_arguments);
}
#endif

#ifdef WITH_before_arguments_equal
static int equal_arguments;
CONSTRUCT(compare_arguments)
{
    (void)argv, (void)envp;
    for (int number = 1; number < 16; number++)
        equal_arguments |= (argc == number) << number;
}
TELL(before_arguments_equal)
{
    say("%d", equal_arguments);
}
#endif

#ifdef WITH_before_arguments_on_stack
extern void *__libc_stack_end;
static int odd_arguments;
CONSTRUCT(look_at_stack_end)
{
    UNUSED;
    odd_arguments = *(long *)__libc_stack_end % 3 == 1;
}
TELL(before_arguments_on_stack)
{
    say("%d %d", odd_arguments, *(long *)__libc_stack_end == own_argc);
}
#endif

#ifdef WITH_before_arguments_hidden
static uintptr_t hidden_arguments;
CONSTRUCT(hide_arguments)
{
    (void)envp;
    hidden_arguments = (uintptr_t)argv ^ 0x5555 ^ (uintptr_t)argc << 48;
}
TELL(before_arguments_hidden)
{
    say("%d", ((char **)((hidden_arguments ^ 0x5555) & 0xffffffffffff))[0] == own_argv[0]);
}
#endif

#ifdef WITH_before_arguments_by_proc
static int proc_arguments;
CONSTRUCT(read_cmdline)
{
    UNUSED;
    char text[4096];
    proc_arguments = slurp("/proc/self/cmdline", text, sizeof text);
}
TELL(before_arguments_by_proc)
{
    say("%d", proc_arguments);
}
#endif

#ifdef WITH_before_arguments_last
static char last_argument[64];
CONSTRUCT(copy_last)
{
    (void)envp;
    if (argc > 1)
        snprintf(last_argument, sizeof last_argument, "%s", argv[argc - 1]);
}
TELL(before_arguments_last)
{
    say("%s", last_argument);
}
#endif

#ifdef WITH_before_input
static char first_input[8];
static long first_got;
CONSTRUCT(read_input)
{
    UNUSED;
    first_got = read(0, first_input, 4);
}
TELL(before_input)
{
    say("%ld '%s'", first_got, first_input);
}
#endif

#ifdef WITH_before_input_char
static int first_char;
CONSTRUCT(read_char)
{
    UNUSED;
    first_char = getchar();
}
TELL(before_input_char)
{
    say("%d", first_char);
}
#endif

#ifdef WITH_before_input_kind
static int input_terminal, input_kind, input_offset;
CONSTRUCT(look_at_input)
{
    UNUSED;
    struct stat now = {0};
    input_terminal = isatty(0);
    fstat(0, &now);
    input_kind = (int)(now.st_mode & S_IFMT);
    input_offset = (int)lseek(0, 0, SEEK_CUR);
}
TELL(before_input_kind)
{
    say("terminal %d kind %o offset %d", input_terminal, (unsigned)input_kind, input_offset);
}
#endif

#ifdef WITH_before_input_kind_by_call
static int called_kind;
CONSTRUCT(call_input_kind)
{
    UNUSED;
    struct stat now = {0};
    RAW(SYS_fstat, 0, &now);
    called_kind = (int)(now.st_mode & S_IFMT) + (int)now.st_size;
}
TELL(before_input_kind_by_call)
{
    say("%o", (unsigned)called_kind);
}
#endif

#ifdef WITH_before_output
CONSTRUCT(write_output)
{
    UNUSED;
    if (write(1, "constructed\n", 12) != 12)
        _exit(98);
}
TELL(before_output)
{
    say("written");
}
#endif

#ifdef WITH_before_output_buffered
CONSTRUCT(print_output)
{
    UNUSED;
    printf("printed before main;");
}
TELL(before_output_buffered)
{
    say("printed");
}
#endif

#ifdef WITH_before_output_same
static int outputs_same = -1;
CONSTRUCT(compare_outputs)
{
    UNUSED;
    struct stat first, second;
    if (fstat(1, &first) == 0 && fstat(2, &second) == 0)
        outputs_same = first.st_ino == second.st_ino;
}
TELL(before_output_same)
{
    say("%d", outputs_same);
}
#endif

#ifdef WITH_before_strings_beside
/* In main, but before it looks at its arguments. */
static int beside;
BEGIN(look_beside)
{
    extern char **environ;
    beside = environ[0] ? environ[0][-2] : 0;
}
TELL(before_strings_beside)
{
    say("%d", beside);
}
#endif

#ifdef WITH_before_strings_place
static long distance, offset;
BEGIN(compare_places)
{
    extern char **environ;
    extern void *__libc_stack_end;
    char **const argv = (char **)__libc_stack_end + 1;
    distance = argv[0] && argv[1] ? argv[1] - argv[0] : 0;
    offset = environ[0] ? environ[0] - argv[0] : 0;
}
TELL(before_strings_place)
{
    SAY2("%ld %ld", distance, offset);
}
#endif
