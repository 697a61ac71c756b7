"""Two PostgreSQL servers that agree by Corten alone who leads: what was answered to a client is kept, whatever is killed."""

import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import psycopg
import yaml

HERE = pathlib.Path(__file__).parent
SECONDS_MAX = 60
# The least that Patroni takes: a leader that is gone is replaced within the first and two of the second.
TTL, LOOP_WAIT, RETRY_TIMEOUT = 20, 1, 3
BIN = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
# PostgreSQL refuses root; in a user namespace of its own it is another, and root's files are its own.
UNPRIVILEGED = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []


def until(what, look, seconds=SECONDS_MAX):
    """What `look` finds, as soon as it finds anything. What is away finds nothing."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if found := look():
                return found
        except (OSError, urllib.error.URLError, psycopg.Error, subprocess.CalledProcessError):
            pass
        time.sleep(0.1)
    raise AssertionError(f"{what} did not come to pass in {seconds} s")


class Member:
    """One Patroni with its PostgreSQL."""

    def __init__(self, cluster, name, number):
        self.cluster, self.name, self.folder = cluster, name, f"{cluster.folder}/{name}"
        self.port, self.api = cluster.port + 100 + number, cluster.port + 200 + number
        self.process = None
        os.makedirs(self.folder)
        users = {"superuser": "postgres", "replication": "replicator"}
        users = {role: {"username": name, "password": "secret"} for role, name in users.items()}
        settings = {
            "scope": "demo",
            "name": name,
            "restapi": {"listen": f"127.0.0.1:{self.api}", "connect_address": f"127.0.0.1:{self.api}"},
            "kubernetes": {
                "context": cluster.context,
                "namespace": "default",
                "labels": {"application": "patroni"},
                "use_endpoints": True,
                "pod_ip": f"198.51.100.{number}",
                "ports": [{"port": 5432}],
            },
            "bootstrap": {
                "dcs": {
                    "ttl": TTL,
                    "loop_wait": LOOP_WAIT,
                    "retry_timeout": RETRY_TIMEOUT,
                    "synchronous_mode": True,
                    "postgresql": {"use_pg_rewind": True},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}],
                "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self.port}",
                "connect_address": f"127.0.0.1:{self.port}",
                "data_dir": f"{self.folder}/data",
                "bin_dir": BIN,
                "pgpass": f"{self.folder}/pgpass",
                "authentication": users,
                "parameters": {"unix_socket_directories": self.folder, "fsync": "off", "shared_buffers": "16MB"},
            },
        }
        pathlib.Path(f"{self.folder}/patroni.yaml").write_text(yaml.safe_dump(settings))

    def start(self):
        words = [*UNPRIVILEGED, sys.executable, "-m", "patroni", f"{self.folder}/patroni.yaml"]
        its = {**os.environ, "KUBECONFIG": f"{self.cluster.folder}/patroni.kubeconfig"}
        with open(f"{self.folder}/patroni.log", "a") as log:
            self.process = subprocess.Popen(words, env=its, stdout=log, stderr=log, start_new_session=True)

    def kill(self):
        """Both at once, as a machine's end does it."""
        pid = pathlib.Path(f"{self.folder}/data/postmaster.pid")
        pids = [self.process.pid] + ([int(pid.read_text().split()[0])] if pid.exists() else [])
        for it in pids:
            try:
                os.kill(it, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(30)
        # The children of a postmaster that was killed see it and end.
        until("the end of PostgreSQL", lambda: not self.answers_at_all())

    def answers_at_all(self):
        try:
            return self.sql("select 1")
        except psycopg.Error:
            return False

    def state(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.api}/patroni", timeout=3) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def sql(self, text, *values):
        place = f"host=127.0.0.1 port={self.port} user=postgres password=secret dbname=postgres connect_timeout=3"
        with psycopg.connect(place, autocommit=True) as connection:
            cursor = connection.execute(text, values)
            return cursor.fetchall() if cursor.description else []

    def switch_over_to(self, candidate):
        """Refused until the leader has noted that the other is as far as itself."""
        change = json.dumps({"leader": self.name, "candidate": candidate}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.api}/switchover", change, timeout=60) as answer:
            return answer.status == 200

    def leads(self):
        return self.state()["role"] in ("primary", "master") and self.sql("select pg_is_in_recovery()") == [(False,)]

    def follows(self):
        return self.state()["role"] == "replica" and self.state().get("replication_state") == "streaming"


class Patroni(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="patroni-", dir=os.environ["CORTEN_E2E_DIR"])
        self.port = int(os.environ["CORTEN_PORT"]) % 1000 + 17000
        self.admin = f"{self.folder}/server/admin.kubeconfig"
        self.start_server()
        until("the API", lambda: self.kubectl("get", "serviceaccount", "default"))
        self.kubectl("apply", "-f", str(HERE / "members.yaml"))
        self.write_kubeconfig()
        self.members = [Member(self, name, number) for number, name in enumerate(["one", "two"], 1)]
        self.answered = []

    def tearDown(self):
        started = [it for it in self.members if it.process]
        for member in started:
            member.process.terminate()
        for member in started:
            member.process.wait(60)
            print(pathlib.Path(f"{member.folder}/patroni.log").read_text()[-6000:])
        self.server.terminate()
        self.server.wait(30)
        shutil.rmtree(self.folder)

    def start_server(self):
        words = ["corten", "server", "--port", str(self.port), "--data-dir", f"{self.folder}/server"]
        with open(f"{self.folder}/server.log", "a") as log:
            self.server = subprocess.Popen(words, stderr=log)
        until("a kubeconfig", lambda: os.path.exists(self.admin))

    def kubectl(self, *words):
        words = ["kubectl", f"--kubeconfig={self.admin}", "--request-timeout=5s", *words]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def write_kubeconfig(self):
        """Patroni comes with a token of its ServiceAccount, and may no more than its Role says."""
        config = yaml.safe_load(pathlib.Path(self.admin).read_text())
        self.context = config["current-context"]
        token = self.kubectl("create", "token", "patroni", "--duration=1h").strip()
        config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
        pathlib.Path(f"{self.folder}/patroni.kubeconfig").write_text(yaml.safe_dump(config))

    def leader(self, seconds=SECONDS_MAX):
        def look():
            leaders = []
            for it in self.members:
                try:
                    leaders += [it] if it.leads() else []
                except (OSError, urllib.error.URLError, psycopg.Error):
                    pass
            self.assertLess(len(leaders), 2, "two lead at once")
            return leaders and leaders[0]

        return until("a leader", look, seconds)

    def write(self, seconds=SECONDS_MAX):
        """One more row, to whoever leads. What was answered is to be there for ever."""
        number = len(self.answered) + 1
        def look():
            self.leader(seconds).sql("insert into kept values (%s) on conflict do nothing", number)
            return True

        until(f"write {number}", look, seconds)
        self.answered.append(number)

    def assert_kept(self):
        rows = [it[0] for it in self.leader().sql("select number from kept order by number")]
        self.assertEqual(rows, self.answered)

    def annotations(self, endpoints="demo"):
        return json.loads(self.kubectl("get", "endpoints", endpoints, "-o", "json"))["metadata"]["annotations"]

    def test_what_was_answered_is_kept(self):
        one, two = self.members
        one.start()
        self.assertIs(self.leader(), one)
        two.start()
        until("a second that follows", two.follows)
        one.sql("create table kept (number int primary key)")
        self.write()
        self.assertEqual(self.annotations()["leader"], "one")

        # The other takes over because it is asked to.
        until("a switchover", lambda: one.switch_over_to("two"))
        until("two leads", two.leads)
        until("one follows", one.follows)
        self.write()

        # A server that stands still for a while, and one that is killed: who leads goes on, and nobody else does.
        self.server.send_signal(signal.SIGSTOP)
        time.sleep(2)
        self.server.send_signal(signal.SIGCONT)
        self.write()
        for _ in range(3):
            self.server.kill()
            self.server.wait(30)
            self.start_server()
            self.write()
        self.assertIs(self.leader(), two)
        until("one follows", one.follows)

        # One that is away for longer than a leader may go on without it: nobody leads then, and somebody does after it.
        self.server.kill()
        self.server.wait(30)
        until("nobody leads", lambda: not any(it.leads() for it in self.members))
        self.start_server()
        self.write()

        # Who leads is killed with all that is its: the other leads when the lock has ended.
        killed = self.leader()
        other = two if killed is one else one
        # Else Patroni rightly has nobody lead: the other might lack what was answered.
        until("a synchronous standby", lambda: self.annotations("demo-sync").get("sync_standby") == other.name)
        killed.kill()
        until("the other leads", other.leads)
        self.write()
        self.assertEqual(self.annotations()["leader"], other.name)
        killed.start()
        until("it follows", killed.follows)
        self.write()
        self.assert_kept()


if __name__ == "__main__":
    unittest.main()
