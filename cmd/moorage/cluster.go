package main

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/catalog"
	"moorage/cluster"
	"moorage/internal/cli"
	"moorage/locks"
	"moorage/management"
	"moorage/registry"
	"moorage/registry/postgres"
	"moorage/rest"
)

// peers connects a node with the other nodes, in both directions. It is nil on a node that has no
// connections to others.
type peers struct {
	listener   net.Listener
	serving    chan error // the error that ended the server; nil until start
	server     *http.Server
	membership *cluster.Membership
	router     *cluster.Router
	heat       *cluster.Heat
	pointers   catalog.Pointers // set by attach
	logger     *slog.Logger
}

// askAllMax is the maximum time that a node waits for the answers of all other nodes to a request.
const askAllMax = 3 * time.Second

// The files in the folder of --peer-tls, with the names that Kubernetes gives them.
const (
	peerCertificate = "tls.crt"
	peerKey         = "tls.key"
	peerAuthority   = "ca.crt"
)

// peerFile returns the path of the file called name in the folder of --peer-tls, or "" if there is
// no such folder.
func peerFile(c cli.Config, name string) string {
	if c.PeerTLS == "" {
		return ""
	}
	return filepath.Join(c.PeerTLS, name)
}

// openPeers opens the peer listener that c describes, or returns nil if c describes none. The
// listener does not answer requests before start.
func openPeers(ctx context.Context, c cli.Config, locks nodeLocks, metrics prometheus.Registerer,
	logger *slog.Logger) (*peers, error) {
	if c.PeerListen == "" {
		return nil, nil
	}
	var texts [3][]byte
	for i, name := range []string{peerCertificate, peerKey, peerAuthority} {
		text, err := os.ReadFile(peerFile(c, name))
		if err != nil {
			return nil, fmt.Errorf("--peer-tls: %w", err)
		}
		texts[i] = text
	}
	if err := refuseClientsAsPeers(c.TLSClientCA, texts[2]); err != nil {
		return nil, err
	}
	answering, calling, err := cluster.NewTLS(texts[0], texts[1], texts[2])
	if err != nil {
		return nil, fmt.Errorf("--peer-tls: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", c.PeerListen)
	if err != nil {
		return nil, fmt.Errorf("--peer-listen: %w", err)
	}
	address, err := peerAddress(c, listener.Addr())
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	p := &peers{
		listener: boundListener(listener, c.ConnectionsMax, nil), heat: cluster.NewHeat(time.Now), logger: logger,
		membership: cluster.NewMembership(cluster.MembershipConfig{
			Sessions: locks.members, Session: locks.session, Address: address,
			Jitter: newJitter(), Now: time.Now, Logger: logger,
		}),
	}
	p.router = cluster.NewRouter(cluster.RouterConfig{
		View: p.membership.View, Address: address, Version: version(), TLS: calling, Heat: p.heat, Logger: logger,
		Observe: meterForwards(metrics),
		PointerOf: func(ident moorage.Identifier) (cluster.Pointer, bool) {
			id, known := p.pointers.Named(ident)
			return cluster.Pointer(id), known
		},
	})
	p.server = newServer(nil)
	p.server.TLSConfig, p.server.Protocols = answering, cluster.Protocols()
	meterMembers(metrics, p.membership)
	return p, nil
}

// refuseClientsAsPeers returns an error if an authority of nodes, in peerCA, is also an authority
// of clients, in the file clientCA. Otherwise each client could act as a node, on behalf of any
// caller. If clientCA is empty, clients have no authority.
func refuseClientsAsPeers(clientCA string, peerCA []byte) error {
	if clientCA == "" {
		return nil
	}
	clients, err := os.ReadFile(clientCA)
	if err != nil {
		return fmt.Errorf("--tls-client-ca: %w", err)
	}
	keys := keysOfPEM(clients)
	for key := range keysOfPEM(peerCA) {
		if keys[key] {
			return errors.New("--peer-tls and --tls-client-ca hold the same authority: each client could speak as a " +
				"node. Make an authority for nodes alone, as the guide to clusters shows")
		}
	}
	return nil
}

// keysOfPEM returns the set of public keys of the certificates in text.
func keysOfPEM(text []byte) map[string]bool {
	keys := make(map[string]bool)
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if found, err := x509.ParseCertificate(block.Bytes); err == nil {
			keys[string(found.RawSubjectPublicKeyInfo)] = true
		}
	}
	return keys
}

// peerAddress returns the address that other nodes call.
func peerAddress(c cli.Config, listening net.Addr) (string, error) {
	_, port, err := net.SplitHostPort(listening.String())
	if err != nil {
		return "", fmt.Errorf("--peer-listen: %w", err)
	}
	called := c.PeerListen
	if c.PeerAddress != "" {
		called = c.PeerAddress
	}
	host, calledPort, err := net.SplitHostPort(called)
	if err != nil {
		return "", fmt.Errorf("--peer-address: %w", err)
	}
	if calledPort != "0" {
		port = calledPort
	}
	return net.JoinHostPort(host, port), nil
}

// attach sets the node's catalog, and the handler of forwarded requests.
func (p *peers) attach(made *catalog.Catalog, handler http.Handler) {
	if p == nil {
		return
	}
	p.pointers = made.Pointers()
	p.server.Handler = unlessGone(cluster.Arrive(handler))
}

// restRouter returns the router for package rest, or nil if this node forwards no requests.
func (p *peers) restRouter() rest.Router {
	if p == nil {
		return nil
	}
	return p.router
}

// count returns the number of nodes that this node knows, including itself.
func (p *peers) count() int {
	if p == nil {
		return 1
	}
	return max(len(p.membership.View().Members), 1)
}

// versions returns the version of each node that this node knows, including its own.
func (p *peers) versions() []string {
	if p == nil || len(p.membership.View().Members) == 0 {
		return []string{version()}
	}
	var all []string
	for _, member := range p.membership.View().Members {
		all = append(all, member.Version)
	}
	return all
}

// ask sends a read-only request to the other nodes, on behalf of caller.
func (p *peers) ask(request *http.Request, caller moorage.Caller) (answers []management.PeerAnswer) {
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(request.Context(), askAllMax)
	defer cancel()
	for _, answer := range p.router.AskAll(request.WithContext(ctx), caller) {
		answers = append(answers, management.PeerAnswer(answer))
	}
	return answers
}

// raceLost returns the function that the catalog must call when a commit has lost a race.
func (p *peers) raceLost(metrics prometheus.Registerer) func(registry.ID) {
	lost := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "moorage_commit_races_lost_total",
		Help: "Attempts to commit to a table or view that lost against another commit, usually of another node.",
	})
	metrics.MustRegister(lost)
	return func(pointer registry.ID) {
		lost.Inc()
		if p != nil {
			p.heat.Lost(cluster.Pointer(pointer))
		}
	}
}

// start starts to answer other nodes, and joins the cluster.
func (p *peers) start() {
	if p == nil {
		return
	}
	p.server.ErrorLog = slog.NewLogLogger(p.logger.Handler(), slog.LevelWarn)
	p.serving = make(chan error, 1)
	go func() { p.serving <- p.server.ServeTLS(p.listener, "", "") }()
	p.membership.Start()
}

// leave takes the node out of the cluster, so that other nodes stop sending it requests.
func (p *peers) leave() {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	if err := p.membership.Leave(ctx); err != nil {
		p.logger.Warn("the other nodes find out later that this one has left", "error", err)
	}
}

// close waits for the requests of other nodes to end, but at most for timeout. The node must have
// left the cluster before.
func (p *peers) close(timeout time.Duration) error {
	if p == nil {
		return nil
	}
	defer p.router.Close()
	if p.serving == nil {
		return p.listener.Close()
	}
	err := shutdown(p.server, timeout)
	if ended := <-p.serving; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("answer other nodes: %w", ended))
	}
	return err
}

// abandon closes everything if start and close were not called.
func (p *peers) abandon() error {
	if p == nil {
		return nil
	}
	if err := errors.Join(p.server.Close(), p.listener.Close()); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// meterForwards returns a function that counts, by result, the requests that this node tried to
// forward.
func meterForwards(metrics prometheus.Registerer) func(cluster.Result) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "moorage_forwarded_total",
		Help: "Commits sent to the owner of their table, by result. Except for the result answered, this node " +
			"carried the commit out.",
	}, []string{"result"})
	metrics.MustRegister(counter)
	for _, result := range cluster.Results() {
		counter.WithLabelValues(string(result))
	}
	return func(result cluster.Result) { counter.WithLabelValues(string(result)).Inc() }
}

// meterMembers adds the node's view of the cluster to metrics.
func meterMembers(metrics prometheus.Registerer, membership *cluster.Membership) {
	metrics.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "moorage_cluster_members",
			Help: "Nodes that have announced a peer listener, as this node sees them.",
		}, func() float64 { return float64(len(membership.View().Members)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "moorage_cluster_view",
			Help: "Number of this node's view of the members. Nodes with the same number agree.",
		}, func() float64 { return float64(membership.View().Number) }),
	)
}

// nodeLocks holds the locks of a node. They order the node's operations, and with a shared store
// also the operations of other nodes.
type nodeLocks struct {
	locks.Manager
	// announce informs the other nodes that this node listens on an address. It also ends the
	// session of the process that listened there before.
	announce func(address net.Addr)
	// withdraw revokes the announcement. The node calls it before it stops listening, so that the
	// next process on the address does not end this process's locks.
	withdraw func()
	close    func() error
	// members is the node's view of the sessions of all nodes, and session returns its own session.
	// Both are nil for a store that only one process can use.
	members cluster.Sessions
	session func() string
}

// openLocks returns the locks for a store. For a database, all nodes share the locks. For other
// stores, the locks are local to the process. The locks report to metrics.
func openLocks(ctx context.Context, c cli.Config, metrics prometheus.Registerer, logger *slog.Logger,
) (nodeLocks, error) {
	observer := newLockMetrics(metrics)
	if !c.InDatabase() {
		local := locks.NewLocal(locks.LocalConfig{Observer: observer})
		return nodeLocks{
			Manager: local, announce: func(net.Addr) {}, withdraw: func() {}, close: func() error { return nil },
		}, nil
	}
	leases, err := postgres.OpenLeases(ctx, c.Store)
	if err != nil {
		return nodeLocks{}, err
	}
	manager := locks.NewCoalesced(locks.NewDistributed(locks.DistributedConfig{
		Leases: meterLeases(leases, metrics), Name: nodeName(), Version: version(),
		Jitter: newJitter(), Random: rand.Reader, Observer: observer, Logger: logger,
	}))
	return nodeLocks{
		Manager:  manager,
		announce: func(address net.Addr) { manager.Announce(nodeAddress(address), hostIdentity()) },
		withdraw: func() { withdraw(manager, logger) },
		close:    func() error { return closeShared(manager.Close, leases.Close) },
		members:  leases,
		session:  manager.Session,
	}, nil
}

// leavePatience is how long a stopping node waits for the database to record that it has withdrawn
// and released its locks. If the database hangs, other nodes find out when the session ends.
const leavePatience = 2 * time.Second

// withdraw revokes the announcement made by manager.
func withdraw(manager *locks.Coalesced, logger *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	if err := manager.Withdraw(ctx); err != nil {
		logger.Warn("a process that listens on this address next may take the locks of what is still under way",
			"error", err)
	}
}

// closeShared calls leave, then shut. If leave takes longer than leavePatience, closeShared calls
// shut at once, which makes leave return.
func closeShared(leave func(), shut func() error) error {
	var leaving sync.WaitGroup
	left := make(chan struct{})
	leaving.Go(func() {
		defer close(left)
		leave()
	})
	patience := time.NewTimer(leavePatience)
	defer patience.Stop()
	select {
	case <-left:
	case <-patience.C:
	}
	err := shut()
	leaving.Wait()
	return err
}

// nodeName returns the name under which the store records the locks of this process.
func nodeName() string {
	return fmt.Sprintf("%s:%d", hostName(), os.Getpid())
}

// nodeAddress returns the address under which the store records a listening process. It contains
// the machine's name, because the address alone may mean all addresses, or may also exist on other
// machines.
func nodeAddress(address net.Addr) string { return hostName() + "/" + address.String() }

// hostIdentity returns a value that identifies one boot of one machine, and one network namespace
// in it. It consists of the kernel's id of the boot and the id of the network namespace. Containers
// on one machine have different network namespaces, and machines with the same name have different
// boots. So two processes with the same value cannot listen on one address at the same time. If the
// system does not provide these ids, the value is "", and allows no such conclusion.
func hostIdentity() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || strings.TrimSpace(string(boot)) == "" {
		return ""
	}
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil || network == "" {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + network
}

// hostName returns the name of the machine or container, for human readers.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
