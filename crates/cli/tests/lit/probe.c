// A program that reads a file in a way that somebody could overlook, or asks for what no key can hold. `probe MODE PATH` ends with 0 if the
// file begins with "one"; modes that read no file end with 0 if they could do what they do, and with 77 if the system cannot.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *path;
static char directory[4096], name[4096];

static int is_one(int fd) {
  char text[4] = "";
  return fd < 0 || read(fd, text, 3) < 0 || strcmp(text, "one") != 0;
}

static int opened(void) { return is_one(open(path, O_RDONLY)); }

static int parent(void) { return open(directory, O_RDONLY | O_DIRECTORY); }

static int by_mapping(void) {
  int fd = open(path, O_RDONLY);
  char *text = mmap(NULL, 4, PROT_READ, MAP_SHARED, fd, 0);
  return text == MAP_FAILED || memcmp(text, "one", 3) != 0;
}

static int by_directory(void) { return is_one(openat(parent(), name, O_RDONLY)); }

static int by_path_descriptor(void) {
  int fd = open(directory, O_PATH);
  return is_one(openat(fd, name, O_RDONLY));
}

static int by_working_directory(void) { return fchdir(parent()) || is_one(open(name, O_RDONLY)); }

static int by_dots(void) {
  char with_dots[8500];
  snprintf(with_dots, sizeof with_dots, "%s/../%s/./%s", directory, basename(strdup(directory)), name);
  return is_one(open(with_dots, O_RDONLY));
}

static void *in_thread(void *result) {
  *(int *)result = opened();
  return NULL;
}

static int by_thread(void) {
  pthread_t thread;
  int result = 1;
  pthread_create(&thread, NULL, in_thread, &result);
  pthread_join(thread, NULL);
  return result;
}

static int waited(pid_t pid) {
  int status = 1;
  return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

static int by_grandchild(void) {
  pid_t pid = fork();
  if (pid == 0) {
    pid_t below = fork();
    _exit(below == 0 ? opened() : waited(below));
  }
  return waited(pid);
}

static int by_vfork(void) {
  pid_t pid = vfork();
  if (pid == 0)
    _exit(opened());
  return waited(pid);
}

static int in_clone(void *unused) {
  (void)unused;
  return opened();
}

static int by_clone(void) {
  static char stack[65536] __attribute__((aligned(16)));
  return waited(clone(in_clone, stack + sizeof stack, CLONE_VM | CLONE_FILES | CLONE_FS | SIGCHLD, NULL));
}

static int by_many(void) {
  // Several processes ask at once.
  pid_t pids[8];
  int result = 0;
  for (int at = 0; at < 8; at++)
    if ((pids[at] = fork()) == 0) {
      for (int turn = 0; turn < 50; turn++)
        if (access(path, R_OK) != 0)
          _exit(1);
      _exit(opened());
    }
  for (int at = 0; at < 8; at++)
    result |= waited(pids[at]);
  return result;
}

static int by_sendfile(void) {
  int fd = open(path, O_RDONLY), to = memfd_create("x", 0);
  if (sendfile(to, fd, NULL, 3) != 3 || lseek(to, 0, SEEK_SET) != 0)
    return 1;
  return is_one(to);
}

static int by_readv(void) {
  char text[4] = "";
  struct iovec part = {text, 3};
  return preadv(open(path, O_RDONLY), &part, 1, 0) != 3 || strcmp(text, "one") != 0;
}

static int by_creating(void) { return is_one(open(path, O_RDONLY | O_CREAT, 0666)); }

static int by_reading_and_writing(void) { return is_one(open(path, O_RDWR)); }

static int by_empty_name(void) {
  // Not the empty name: the flag only allows that.
  struct stat found;
  return fstatat(parent(), name, &found, AT_EMPTY_PATH) || found.st_size != 4 || found.st_mtime < 100000;
}

static int by_statx(void) {
  struct statx found;
  return syscall(SYS_statx, parent(), name, AT_EMPTY_PATH, STATX_SIZE | STATX_MTIME, &found) || found.stx_size != 4 ||
         found.stx_mtime.tv_sec < 100000;
}

static int by_name_with_slash(void) {
  char with_slash[4200];
  struct stat found;
  snprintf(with_slash, sizeof with_slash, "%s/", directory);
  return stat(with_slash, &found) || (found.st_mode & 0777) == 0700;
}

static int by_list(void) {
  DIR *list = opendir(directory);
  struct dirent *entry;
  int count = 0;
  while ((entry = readdir(list)))
    count += strcmp(entry->d_name, "late") == 0;
  return count;
}

static int is_missing(void) {
  struct stat found;
  return lstat(path, &found) == 0;
}

static int is_missing_below_descriptor(void) { return faccessat(parent(), name, F_OK, 0) == 0; }

static int is_missing_program(void) {
  char *none[] = {NULL};
  execve(path, none, none);
  return errno != ENOENT;
}

static int is_missing_directory(void) { return chdir(path) == 0; }

static int is_missing_link(void) {
  char text[8];
  return readlink(path, text, sizeof text) >= 0;
}

// What follows can be held by no key.

static int by_uring(void) {
  struct io_uring_params params = {0};
  return syscall(SYS_io_uring_setup, 4, &params) < 0 ? 77 : 0;
}

static int by_openat2(void) {
  struct open_how how = {.flags = O_RDONLY};
  return is_one((int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}

static int by_proc(void) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", open(path, O_RDONLY));
  return is_one(open(link, O_RDONLY));
}

static int by_dev_fd(void) {
  char link[64];
  snprintf(link, sizeof link, "/dev/fd/%d", open(path, O_RDONLY));
  return is_one(open(link, O_RDONLY));
}

static int by_handle(void) {
  char space[sizeof(struct file_handle) + MAX_HANDLE_SZ];
  struct file_handle *handle = (struct file_handle *)space;
  int mount;
  handle->handle_bytes = MAX_HANDLE_SZ;
  return name_to_handle_at(AT_FDCWD, path, handle, &mount, 0) ? 77 : 0;
}

static int by_message(void) {
  int ends[2];
  char text[1] = "", space[CMSG_SPACE(sizeof(int))] = "";
  struct iovec part = {text, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  int fd = open(path, O_RDONLY);
  header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || sendmsg(ends[0], &message, 0) != 1 || recvmsg(ends[1], &message, 0) != 1)
    return 1;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return is_one(fd);
}

static int by_other_architecture(void) {
#ifdef __x86_64__
  // The name has to lie below 4 GiB.
  char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  long result = 5;
  if (low == MAP_FAILED)
    return 77;
  strcpy(low, path);
  __asm__ volatile("int $0x80" : "+a"(result) : "b"(low), "c"(0), "d"(0) : "memory", "r8", "r9", "r10", "r11");
  return result < 0 ? 77 : is_one((int)result);
#else
  return 77;
#endif
}

static int by_x32(void) {
  long fd = syscall(0x40000000 | SYS_open, path, O_RDONLY);
  return fd < 0 ? 77 : is_one((int)fd);
}

static int by_attribute(void) {
  char text[16];
  return getxattr(path, "user.x", text, sizeof text) >= 0;
}

static int by_counter(void) {
#ifdef __x86_64__
  unsigned low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return low == 0 && high == 0;
#else
  return 77;
#endif
}

static int by_counter_and_processor(void) {
#ifdef __x86_64__
  unsigned low, high, processor;
  __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(processor));
  return low == 0 && high == 0;
#else
  return 77;
#endif
}

static int by_clock(void) {
  struct timespec now;
  return clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
}

static int by_day(void) { return time(NULL) < 1000; }

static int by_times(void) {
  struct tms used;
  return times(&used) == (clock_t)-1;
}

static int by_timer(void) {
  struct itimerval soon = {{0, 0}, {100, 0}};
  return setitimer(ITIMER_REAL, &soon, NULL);
}

static int by_child_usage(void) {
  struct rusage usage;
  pid_t pid = fork();
  if (pid == 0)
    _exit(0);
  return wait4(pid, NULL, 0, &usage) != pid;
}

static int by_notification(void) { return inotify_init() < 0; }

static int by_shared_memory(void) {
  int fd = shm_open("/hotstart-probe", O_RDONLY | O_CREAT, 0600);
  shm_unlink("/hotstart-probe");
  return fd < 0 ? 77 : 0;
}

static int by_descriptor_program(void) {
  char *arguments[] = {"true", NULL}, *none[] = {NULL};
  int fd = open("/bin/true", O_RDONLY);
  fexecve(fd, arguments, none);
  return 77;
}

static int by_other_root(void) { return chroot("/") ? 77 : 0; }

static int by_namespace(void) { return unshare(CLONE_NEWUTS) ? 77 : 0; }

static int by_priority(void) { return nice(0) == -1; }

static int by_parent(void) { return getppid() == 0; }

static int by_processor(void) { return syscall(SYS_getcpu, NULL, NULL, NULL) != 0; }

static int by_memory_of_others(void) {
  char text[1];
  struct iovec here = {text, 1}, there = {(void *)path, 1};
  return process_vm_readv(getppid(), &here, 1, &there, 1, 0) < 0 ? 0 : 0;
}

static int by_deadline(void) {
  // The first of all: it has passed. `sem_timedwait` is this call.
  int word = 0;
  struct timespec deadline = {1, 0};
  return syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &deadline, NULL, ~0) == 0;
}

static int by_owner(void) {
  int ends[2];
  return pipe(ends) || (fcntl(ends[0], F_SETOWN, 1) < 0 && errno == EBADF);
}

static int by_affinity_of_others(void) {
  cpu_set_t set;
  return sched_getaffinity(1, sizeof set, &set);
}

static int by_robust_list_of_others(void) {
  void *head;
  size_t size;
  return syscall(SYS_get_robust_list, 1, &head, &size) == 0 ? 0 : 77;
}

static int by_chosen_number(void) {
  // As the number of a process, 1 is taken, for root; nobody else may choose.
  pid_t number = 1;
  unsigned long long arguments[11] = {0};
  arguments[4] = SIGCHLD, arguments[8] = (unsigned long long)&number, arguments[9] = 1;
  return syscall(SYS_clone3, arguments, sizeof arguments) >= 0;
}

static void *ends(void *unused) { return unused; }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int is_ready;

static void *makes_ready(void *unused) {
  pthread_mutex_lock(&lock);
  is_ready = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&lock);
  return unused;
}

// What threads and descriptors need can be held by a key.
static int by_waits(void) {
  pthread_t threads[2];
  cpu_set_t set;
  struct flock whole = {.l_type = F_RDLCK};
  int fd = open(path, O_RDONLY | O_CLOEXEC), copy = fcntl(fd, F_DUPFD_CLOEXEC, 10);
  pthread_mutex_lock(&lock);
  pthread_create(&threads[0], NULL, makes_ready, NULL);
  while (!is_ready)
    pthread_cond_wait(&condition, &lock);
  pthread_mutex_unlock(&lock);
  pthread_create(&threads[1], NULL, ends, NULL);
  if (pthread_join(threads[0], NULL) || pthread_join(threads[1], NULL))
    return 1;
  if (sched_getaffinity(0, sizeof set, &set) || pthread_getaffinity_np(pthread_self(), sizeof set, &set))
    return 1;
  if (fcntl(fd, F_SETFD, 0) || fcntl(fd, F_GETFL) < 0 || fcntl(fd, F_SETLK, &whole))
    return 1;
  return is_one(copy);
}

static const struct {
  const char *name;
  int (*run)(void);
} MODES[] = {
    {"open", opened},
    {"mapping", by_mapping},
    {"directory", by_directory},
    {"path-descriptor", by_path_descriptor},
    {"working-directory", by_working_directory},
    {"dots", by_dots},
    {"thread", by_thread},
    {"grandchild", by_grandchild},
    {"vfork", by_vfork},
    {"clone", by_clone},
    {"many", by_many},
    {"sendfile", by_sendfile},
    {"readv", by_readv},
    {"creating", by_creating},
    {"reading-and-writing", by_reading_and_writing},
    {"empty-name", by_empty_name},
    {"statx", by_statx},
    {"name-with-slash", by_name_with_slash},
    {"list", by_list},
    {"missing", is_missing},
    {"missing-below-descriptor", is_missing_below_descriptor},
    {"missing-program", is_missing_program},
    {"missing-directory", is_missing_directory},
    {"missing-link", is_missing_link},
    {"uring", by_uring},
    {"openat2", by_openat2},
    {"proc", by_proc},
    {"dev-fd", by_dev_fd},
    {"handle", by_handle},
    {"message", by_message},
    {"other-architecture", by_other_architecture},
    {"x32", by_x32},
    {"attribute", by_attribute},
    {"counter", by_counter},
    {"counter-and-processor", by_counter_and_processor},
    {"clock", by_clock},
    {"day", by_day},
    {"times", by_times},
    {"timer", by_timer},
    {"child-usage", by_child_usage},
    {"notification", by_notification},
    {"shared-memory", by_shared_memory},
    {"descriptor-program", by_descriptor_program},
    {"other-root", by_other_root},
    {"namespace", by_namespace},
    {"priority", by_priority},
    {"parent", by_parent},
    {"processor", by_processor},
    {"memory-of-others", by_memory_of_others},
    {"deadline", by_deadline},
    {"owner", by_owner},
    {"affinity-of-others", by_affinity_of_others},
    {"robust-list-of-others", by_robust_list_of_others},
    {"chosen-number", by_chosen_number},
    {"waits", by_waits},
};

int main(int count, char **arguments) {
  path = count > 2 ? arguments[2] : "/";
  snprintf(directory, sizeof directory, "%s", dirname(strdup(path)));
  snprintf(name, sizeof name, "%s", basename(strdup(path)));
  for (size_t at = 0; count > 1 && at < sizeof MODES / sizeof *MODES; at++)
    if (strcmp(arguments[1], MODES[at].name) == 0)
      return MODES[at].run();
  return 2;
}
