"""`hotstart exec`: whoever of client, server, guard and job is signalled, no job is lost, run twice, or left behind."""

import os
import re
import resource
import signal
import subprocess

from harness import HOTSTART, Faults, built, limited, of_role
from test_ends import FATAL

# What the client passes on and a job may act on.
STOPS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]
# What ends a Rust program at once: it ignores SIGPIPE, hotstart SIGXFSZ, and a fault's signal without a fault does nothing.
KILLS = [number for number in FATAL if number not in {*STOPS, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGSEGV, signal.SIGBUS}]
PASSED_ON = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM]


class Exec(Faults):
    def setUp(self):
        super().setUp()
        self.env = self.environment(HOTSTART_EXEC_DIR=self.path("server"), HOTSTART_SERVER_START="rewind")
        self.hotstart("exec", "--install", self.path("bin"), check=True)
        self.addCleanup(self.hotstart, "server", "stop")

    def hotstart(self, *words, check=False):
        return subprocess.run([HOTSTART, *words], env=self.env, cwd=self.dir, capture_output=True, text=True, check=check,
                              stdin=subprocess.DEVNULL)

    def client(self, *words, explain=False, **popen):
        popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        env = {**self.env, "HOTSTART_EXEC": "explain"} if explain else self.env
        return subprocess.Popen([self.path("bin/hotstart-exec"), *words], env=env, cwd=self.dir, stdin=subprocess.DEVNULL,
                                text=True, **popen)

    def run_client(self, *words, **more):
        client = self.client(*words, **more)
        out, err = client.communicate()
        return client.returncode, out, err

    def server(self):
        found = re.match(r"server (\d+)", self.hotstart("server", "status").stdout)
        return int(found.group(1)) if found else None

    def warm_up(self):
        """Until the tool is started warm; the server's number."""
        self.await_that("a server", lambda: self.run_client(self.tool, "exit", "0", explain=True)[2] == "")
        return self.server()

    def job(self):
        """A warm job that waits: client, gate, number of the job."""
        gate = self.gate(f"gate-{len(os.listdir(self.dir))}")
        client = self.client(self.tool, "once", gate)
        return client, gate, self.await_begun(gate)

    def await_gone(self, pid):
        self.await_that(f"the end of {pid}", lambda: not os.path.exists(f"/proc/{pid}") or self.reap(pid))

    def reap(self, pid):
        try:
            return os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:
            return False

    def check_ended(self):
        """The server ends in order, and nothing is left but the lock and the log."""
        self.hotstart("server", "stop")
        self.await_nobody()
        left = os.listdir(self.path("server")) if os.path.exists(self.path("server")) else []
        self.assertLessEqual(set(left), {"exec-3.socket.lock", "log"})


class ClientEnds(Exec):
    def test_job_ends_in_any_way(self):
        self.warm_up()
        for status in (0, 1, 127, 255):
            self.assertEqual(self.run_client(self.tool, "exit", str(status))[0], status)
        for number in FATAL:
            with self.subTest(number):
                expected = subprocess.run([self.tool, "signal", str(number)], env=self.env).returncode
                self.assertEqual(self.run_client(self.tool, "signal", str(number))[0], expected)
        self.check_ended()

    def test_signal_to_the_client_reaches_the_job(self):
        self.warm_up()
        for number in PASSED_ON:
            with self.subTest(number):
                client, gate, job = self.job()
                client.send_signal(number)
                client.communicate()
                self.assertEqual(client.returncode, -number)
                self.await_gone(job)
                self.assertEqual(self.runs(gate), 1)
        self.check_ended()

    def test_client_killed_ends_its_job(self):
        self.warm_up()
        client, gate, job = self.job()
        client.kill()
        client.communicate()
        self.await_gone(job)
        self.assertEqual(self.runs(gate), 1)
        self.assertEqual(self.run_client(self.tool, "exit", "5")[0], 5)
        self.check_ended()


class ServerEnds(Exec):
    def test_job_dies_with_a_server_that_is_killed(self):
        for number in KILLS:
            with self.subTest(number):
                server = self.warm_up()
                client, gate, job = self.job()
                os.kill(server, number)
                _, err = client.communicate()
                self.assertEqual(client.returncode, -signal.SIGKILL)
                self.assertIn("it is not run again", err)
                self.assertFalse(os.path.exists(f"/proc/{job}") and not self.reap(job))
                self.assertEqual(self.runs(gate), 1, "begun once")
        # The next server clears away what a killed one has left.
        self.warm_up()
        self.check_ended()

    def test_server_that_is_told_to_end_serves_its_jobs(self):
        server = self.warm_up()
        client, gate, job = self.job()
        os.kill(server, signal.SIGTERM)
        self.open_gate(gate)
        client.communicate()
        self.assertEqual(client.returncode, 0)
        self.assertEqual(self.runs(gate), 1)
        self.await_gone(server)
        self.check_ended()

    def test_idle_server_killed_is_replaced(self):
        for number in (*STOPS, *KILLS):
            with self.subTest(number):
                server = self.warm_up()
                os.kill(server, number)
                # Until the kernel has taken it away, a client may still reach it, and cannot know what it has begun.
                self.await_gone(server)
                self.assertEqual(self.run_client(self.tool, "exit", "6")[0], 6)
                self.assertNotEqual(self.warm_up(), server)
        self.check_ended()

    def test_zygote_and_worker_killed_below_the_server(self):
        server = self.warm_up()
        for role, number in [(role, number) for role in ("zygote", "worker") for number in (*STOPS, *KILLS)]:
            with self.subTest(role, number=number):
                for pid in of_role(server, role):
                    os.kill(pid, number)
                self.assertEqual(self.run_client(self.tool, "exit", "7")[0], 7)
        self.assertEqual(self.server(), server)
        self.check_ended()

    def test_guard_of_the_server_killed(self):
        for number in (*STOPS, *KILLS):
            with self.subTest(number):
                server = self.warm_up()
                for pid in of_role(server, "guard"):
                    os.kill(pid, number)
                self.assertEqual(self.run_client(self.tool, "exit", "8")[0], 8)
                self.check_ended()

    def test_socket_and_directory_taken_away(self):
        first = self.warm_up()
        os.rename(self.path("server"), self.path("moved"))
        self.assertEqual(self.run_client(self.tool, "exit", "9")[0], 9)
        self.assertNotEqual(self.warm_up(), first)
        self.hotstart("server", "stop")
        os.rename(self.path("server"), self.path("second"))
        os.rename(self.path("moved"), self.path("server"))
        self.assertEqual(self.server(), first)
        self.check_ended()


class NoRoom(Exec):
    def test_job_writes_to_a_full_device(self):
        self.warm_up()
        for words in (["fill", "/dev/stdout", "100000"], ["fill", "/dev/full", "1"], ["use-up", "none"]):
            with self.subTest(words), open("/dev/full", "w") as full:
                cold = subprocess.run([self.tool, *words], env=self.env, stdout=full, stderr=subprocess.PIPE, text=True)
                code, _, err = self.run_client(self.tool, *words, stdout=full)
                self.assertEqual((code, err), (cold.returncode, cold.stderr))
        self.check_ended()

    def test_server_under_limits(self):
        """Clients under the same limits are served or run cold; none fails that would not fail cold."""
        limits = [(resource.RLIMIT_NOFILE, count) for count in (64, 32, 24, 16)]
        limits += [(resource.RLIMIT_AS, size << 20) for size in (1024, 256, 64)]
        limits += [(resource.RLIMIT_FSIZE, size) for size in (1 << 20, 65536, 4096)]
        for which, value in limits:
            with self.subTest(which, value=value):
                prepare = limited(which, value)
                cold = subprocess.run([self.tool, "exit", "0"], env=self.env, preexec_fn=prepare).returncode
                self.assertEqual(cold, 0)
                for _ in range(3):
                    clients = [self.client(self.tool, "exit", str(number), preexec_fn=prepare, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL) for number in range(20)]
                    self.assertEqual([client.wait() for client in clients], list(range(20)))
                self.hotstart("server", "stop")
                self.await_nobody()
        self.check_ended()

    def test_clock_of_the_day_jumps_below_the_server(self):
        env = {**self.env, "LD_PRELOAD": built("clock.c", "-shared", "-fPIC")}
        server = subprocess.Popen([HOTSTART, "server", "run"], env=env, cwd=self.dir, stdin=subprocess.DEVNULL)
        self.await_that("the server", lambda: self.server() == server.pid)
        self.warm_up()
        for number in range(20):
            self.assertEqual(self.run_client(self.tool, "exit", str(number))[0], number)
        self.assertEqual(self.server(), server.pid)
        self.check_ended()
