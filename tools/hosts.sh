#!/bin/sh
# Runs a command under mpirun on hosts of its own: network namespaces of this machine with a
# name, an address and a link of a given speed each. Two of them behave as two machines do:
# ranks on different hosts see each other over the link alone. Needs root, iproute2 and Open MPI.
#
#   tools/hosts.sh -n 2 -r 1gbit -- bin/trainer bench --config configs/bench/albef-small.toml --set compute.threads=1
#   tools/hosts.sh -n 2 -s 2 -r 10gbit -- bin/trainer train --config configs/scenes.toml
#
#   -n hosts   (2)
#   -s slots   ranks on each host (1)
#   -r rate    of each host's link, as tc has it: 1gbit, 10gbit; none: as fast as the machine is
#   -k         keep the hosts afterwards; tools/hosts.sh -x removes them
set -eu

hosts=2 slots=1 rate="" keep=""
net=10.77.0 prefix=geohost

remove() {
	for ns in $(ip netns list | sed -n "s/^\($prefix[0-9]*\).*/\1/p"); do
		ip link del "$ns" 2>/dev/null || true # else it stays until the last process of the host has ended
		ip netns del "$ns"
	done
	ip link del "${prefix}br" 2>/dev/null || true
}

while getopts n:s:r:kx option; do
	case $option in
	n) hosts=$OPTARG ;;
	s) slots=$OPTARG ;;
	r) rate=$OPTARG ;;
	k) keep=yes ;;
	x) remove && exit 0 ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2; }
[ "$(id -u)" = 0 ] || { echo "hosts.sh: network namespaces need root"; exit 1; }
mpirun=$(command -v mpirun.openmpi || command -v mpirun) || { echo "hosts.sh: no mpirun: apt-get install openmpi-bin"; exit 1; }

remove
work=$(mktemp -d)
finish() {
	[ -n "$keep" ] || remove
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# A bridge joins the hosts, as a switch does.
ip link add "${prefix}br" type bridge
ip link set "${prefix}br" up
list=""
for i in $(seq "$hosts"); do
	ns=$prefix$i
	ip netns add "$ns"
	ip link add "$ns" type veth peer name eth0 netns "$ns"
	ip link set "$ns" master "${prefix}br" up
	ip -n "$ns" addr add "$net.$i/24" dev eth0
	ip -n "$ns" link set eth0 up
	ip -n "$ns" link set lo up
	if [ -n "$rate" ]; then # what a host sends; what it gets is what others send
		ip netns exec "$ns" tc qdisc add dev eth0 root handle 1: tbf rate "$rate" burst 256kb latency 100ms
	fi
	list="$list${list:+,}$net.$i:$slots"
done

# What mpirun starts daemons with in the place of ssh: agent HOST COMMAND...
cat >"$work/agent" <<END
#!/bin/sh
i=\${1##*.}; shift
mkdir -p "$work/tmp\$i"
exec ip netns exec "$prefix\$i" unshare --uts sh -c "hostname $prefix\$i; export TMPDIR='$work/tmp\$i'; \$*"
END
chmod +x "$work/agent"
mkdir -p "$work/tmp1"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR="$work/tmp1"
command="$mpirun"
for word in -n $((hosts * slots)) -H "$list" --bind-to none --mca plm_rsh_agent "$work/agent" --mca btl tcp,self,vader --mca pml ob1 \
	--mca btl_tcp_if_include "$net.0/24" --mca oob_tcp_if_include "$net.0/24" "$@"; do
	command="$command '$(printf %s "$word" | sed "s/'/'\\\\''/g")'"
done
ip netns exec "${prefix}1" unshare --uts sh -c "hostname ${prefix}1; exec $command"
