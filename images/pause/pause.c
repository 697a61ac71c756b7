/* Holds a Pod's namespaces: waits, reaps what is left to it, and leaves when asked. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signal) { _exit(signal == SIGTERM ? 0 : 128 + signal); }

static void reap(int signal) {
  (void)signal;
  while (waitpid(-1, 0, WNOHANG) > 0) {
  }
}

int main(void) {
  struct sigaction leaving = {.sa_handler = leave};
  struct sigaction reaping = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
  sigaction(SIGINT, &leaving, 0);
  sigaction(SIGTERM, &leaving, 0);
  sigaction(SIGCHLD, &reaping, 0);
  for (;;)
    pause();
}
