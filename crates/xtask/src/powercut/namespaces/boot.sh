# The machine's first process: boot.sh DISK CGROUP BIN, with START=1 where the cluster starts with the machine.
# It runs in namespaces of its own, of which the network has no card until a line comes in.
set -euo pipefail
disk=$1 cgroup=$2 bin=$3
read -r _

# A mount namespace can only be held in a file of one with a smaller number (EINVAL), and since Linux 6.18 each processor has
# numbers of its own. Corten holds one in a file: this one gets a number that is smaller than those of every processor.
for ((cpu = 0; cpu < $(nproc --all); cpu++)); do
  mount -t tmpfs probe /run && touch /run/probe
  fits=yes
  taskset -c "$cpu" unshare --mount=/run/probe true 2>/dev/null || fits=
  umount --lazy /run/probe 2>/dev/null || :
  umount --lazy /run
  [ -n "$fits" ] || exec taskset -c "$cpu" unshare --mount bash "$0" "$@" <<<go
done
taskset -p -c "0-$(($(nproc --all) - 1))" $$ >/dev/null

# Processors and memory are accounted below one group, which is the root of the machine's own namespace.
if [ "${4:-}" != again ]; then
  for it in /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/cgroup.procs; do
    [ -e "$it" ] || continue
    mkdir -p "${it%/*}/$cgroup"
    # Without CPUs and memory nodes nothing may enter.
    for cpus in cpuset.cpus cpuset.mems; do
      [ ! -e "${it%/*}/$cgroup/$cpus" ] || cat "${it%/*}/$cpus" >"${it%/*}/$cgroup/$cpus"
    done 2>/dev/null
    echo $$ >"${it%/*}/$cgroup/cgroup.procs"
  done
  exec unshare --cgroup bash "$0" "$disk" "$cgroup" "$bin" again <<<go
fi

hostname machine-1
ip link set lo up
ip link set eth0 up
ip address add 10.77.0.1/24 dev eth0
ip route add default via 10.77.0.254

mount -t ext4 "$disk" /var/lib
# Gone with the mount.
losetup -d "$disk"
# What Corten writes elsewhere than on this disk would not be lost by a cut: it cannot.
mount -o remount,bind,ro /
mount -t tmpfs run /run
mkdir /run/bin
mount --bind "$bin" /run/bin
for it in /tmp /dev/shm /usr/local/share; do mount -t tmpfs machine "$it"; done
mkdir -p /usr/local/share/corten
ln -s /var/lib/images /usr/local/share/corten/images

# Another run of the machine for whoever asks.
cat /proc/sys/kernel/random/uuid >/run/boot_id
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id

# /sys as of this network, with the groups of this machine.
mkdir /run/cgroups
mount --rbind /sys/fs/cgroup /run/cgroups
mount -t sysfs sysfs /sys
if [ -e /run/cgroups/cgroup.procs ]; then
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  mkdir -p /sys/fs/cgroup/init
  echo $$ >/sys/fs/cgroup/init/cgroup.procs
else
  mount -t tmpfs cgroup /sys/fs/cgroup
  while IFS=: read -r _ controllers _; do
    [ -n "$controllers" ] || continue
    mkdir "/sys/fs/cgroup/${controllers#name=}"
    mount -t cgroup -o "$controllers" cgroup "/sys/fs/cgroup/${controllers#name=}"
  done </proc/self/cgroup
fi
umount -R /run/cgroups

# The registry outside, by the name that it has in a machine of its own.
mkdir -p /run/etc/containerd/certs.d/127.0.0.1:5000 /run/home
printf 'server = "%s"\n[host."%s"]\n  capabilities = ["pull", "resolve"]\n' http://10.77.0.254:5000 http://10.77.0.254:5000 \
  >/run/etc/containerd/certs.d/127.0.0.1:5000/hosts.toml
mount -t overlay -o lowerdir=/run/etc:/etc etc /etc

export PATH=/run/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run/home
touch /run/is-up
if [ -n "${START:-}" ]; then
  KUBECONFIG=/var/lib/corten/admin.kubeconfig bash -c "$START" >/run/up.log 2>&1 </dev/null &
fi
# It reaps whatever its parents leave behind.
sleep infinity &
while :; do wait || :; done
