/* Parts of addresses that constructors keep, and what main makes of them. A tool's data has such parts by chance, too. See before.h. */
#include "before.h"

#ifdef WITH_before_part_halves
/* Two quarters that main puts together; bytes between them, so that they are no half in one piece. */
static struct {
    char before[3];
    uint16_t low;
    char between[3];
    uint16_t middle;
} __attribute__((packed)) halves;
CONSTRUCT(keep_halves)
{
    (void)argc, (void)envp;
    halves.low = (uint16_t)(uintptr_t)argv;
    halves.middle = (uint16_t)((uintptr_t)argv >> 16);
    halves.between[1] = 1;
}
TELL(before_part_halves)
{
    const uintptr_t list = ((uintptr_t)own_argv & ~0xfffffffful) | (uintptr_t)halves.middle << 16 | halves.low;
    say("%d %d", list == (uintptr_t)own_argv, list == (uintptr_t)own_argv && ((char **)list)[0] == own_argv[0]);
}
#endif

#ifdef WITH_before_part_low
static uint32_t list_low;
CONSTRUCT(keep_low)
{
    (void)argc, (void)envp;
    list_low = (uint32_t)(uintptr_t)argv;
}
TELL(before_part_low)
{
    char **const list = (char **)(((uintptr_t)__builtin_frame_address(0) & ~0xfffffffful) | list_low);
    for (int i = 0; list == own_argv && list[i]; i++)
        say("%d '%s'", i, list[i]);
    say("%d", list == own_argv);
}
#endif

#ifdef WITH_before_part_upper
static uint32_t list_upper;
CONSTRUCT(keep_upper)
{
    (void)argc, (void)envp;
    list_upper = (uint32_t)((uintptr_t)argv >> 32);
}
TELL(before_part_upper)
{
    SAY2("%ld %ld", list_upper == (uintptr_t)own_argv >> 32, list_upper == (uintptr_t)own_argv[own_argc - 1] >> 32);
}
#endif

#ifdef WITH_before_part_tagged
/* The lowest bits are a flag of the tool's own, as in a pointer with a tag. */
static uintptr_t tagged;
CONSTRUCT(tag_list)
{
    (void)argc, (void)envp;
    tagged = (uintptr_t)argv | 5;
}
TELL(before_part_tagged)
{
    SAY2("%ld %ld", (tagged & ~7ul) == (uintptr_t)own_argv, tagged & 7);
}
#endif

#ifdef WITH_before_part_page
static uintptr_t list_page;
CONSTRUCT(keep_page)
{
    (void)argc, (void)envp;
    list_page = (uintptr_t)argv >> 12;
}
TELL(before_part_page)
{
    say("%d", list_page == (uintptr_t)own_argv >> 12);
}
#endif

#ifdef WITH_before_part_offset
static uint16_t list_offset;
CONSTRUCT(keep_offset)
{
    (void)argc, (void)envp;
    list_offset = (uintptr_t)argv & 0xfff;
}
TELL(before_part_offset)
{
    say("%d", list_offset == ((uintptr_t)own_argv & 0xfff));
}
#endif

#ifdef WITH_before_part_aligned
static int list_alignment;
CONSTRUCT(keep_alignment)
{
    (void)argc, (void)envp;
    list_alignment = (int)((uintptr_t)argv % 64);
}
TELL(before_part_aligned)
{
    say("%d", list_alignment == (int)((uintptr_t)own_argv % 64));
}
#endif

#ifdef WITH_before_part_variables
extern char **environ;
static uint16_t variables_part;
CONSTRUCT(keep_variables)
{
    (void)argc, (void)argv;
    variables_part = (uint16_t)((uintptr_t)envp >> 8);
}
TELL(before_part_variables)
{
    /* What libc began with: acts may have changed `environ`. */
    say("%d", variables_part == (uint16_t)((uintptr_t)(own_argv + own_argc + 1) >> 8));
}
#endif

#ifdef WITH_before_part_argument
static uint32_t argument_part;
CONSTRUCT(keep_argument)
{
    (void)envp;
    argument_part = (uint32_t)((uintptr_t)argv[argc - 1] >> 4);
}
TELL(before_part_argument)
{
    say("%d", argument_part == (uint32_t)((uintptr_t)own_argv[own_argc - 1] >> 4));
}
#endif

#ifdef WITH_before_part_distance
static uint32_t first_distance;
CONSTRUCT(keep_distance)
{
    (void)argc, (void)envp;
    first_distance = (uint32_t)(argv[0] - (char *)argv);
}
TELL(before_part_distance)
{
    say("%d", first_distance == (uint32_t)(own_argv[0] - (char *)own_argv));
}
#endif

#ifdef WITH_before_part_of_sum
static uint16_t sum_part;
CONSTRUCT(keep_sum)
{
    (void)envp;
    sum_part = (uint16_t)(((uintptr_t)argv + 0x123450 + (uintptr_t)argc) >> 16);
}
TELL(before_part_of_sum)
{
    say("%d", sum_part == (uint16_t)(((uintptr_t)own_argv + 0x123450 + (uintptr_t)own_argc) >> 16));
}
#endif

#ifdef WITH_before_part_hashed
/* As a table that is keyed by addresses has it. */
static uint8_t bucket;
CONSTRUCT(hash_list)
{
    (void)argc, (void)envp;
    bucket = (uint8_t)(((uintptr_t)argv >> 4 ^ (uintptr_t)argv >> 9) % 61);
}
TELL(before_part_hashed)
{
    say("%d", bucket == (uint8_t)(((uintptr_t)own_argv >> 4 ^ (uintptr_t)own_argv >> 9) % 61));
}
#endif

#ifdef WITH_before_part_on_heap
static uint16_t *heaped;
CONSTRUCT(keep_on_heap)
{
    (void)argc, (void)envp;
    heaped = malloc(64);
    if (heaped) {
        memset(heaped, 0, 64);
        heaped[7] = (uint16_t)((uintptr_t)argv >> 16);
    }
}
TELL(before_part_on_heap)
{
    say("%d", heaped && heaped[7] == (uint16_t)((uintptr_t)own_argv >> 16));
}
#endif

#ifdef WITH_before_part_vector
/* Where the auxiliary vector begins, which is behind the variables. */
static uint16_t vector_part;
static uintptr_t vector_of(char **variables)
{
    while (*variables)
        variables++;
    return (uintptr_t)(variables + 1);
}
CONSTRUCT(keep_vector)
{
    (void)argc, (void)argv;
    vector_part = (uint16_t)vector_of(envp);
}
TELL(before_part_vector)
{
    say("%d", vector_part == (uint16_t)vector_of(own_argv + own_argc + 1));
}
#endif
