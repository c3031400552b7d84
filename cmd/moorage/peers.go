package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/catalog"
	"moorage/cluster"
	"moorage/internal/cli"
	"moorage/registry"
	"moorage/rest"
)

// peers is a node's connection to the other nodes, in both directions. A nil *peers is a node on
// its own.
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

// openPeers opens the peer listener in c, and returns nil if c has none. The listener answers
// nothing before start.
func openPeers(ctx context.Context, c cli.Config, locks nodeLocks, metrics prometheus.Registerer,
	logger *slog.Logger) (*peers, error) {
	if c.PeerListen == "" {
		return nil, nil
	}
	var texts [3][]byte
	for i, file := range []struct{ setting, path string }{
		{"--peer-cert", c.PeerCert}, {"--peer-key", c.PeerKey}, {"--peer-ca", c.PeerCA},
	} {
		text, err := os.ReadFile(file.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.setting, err)
		}
		texts[i] = text
	}
	if err := refuseClientsAsPeers(c.TLSClientCA, texts[2]); err != nil {
		return nil, err
	}
	answering, calling, err := cluster.NewTLS(texts[0], texts[1], texts[2])
	if err != nil {
		return nil, fmt.Errorf("--peer-cert, --peer-key, --peer-ca: %w", err)
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

// refuseClientsAsPeers returns why the authority of nodes must not be the authority of clients,
// which is in the file clientCA, if there is one. Otherwise each client could act as a node, on
// behalf of any caller.
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
			return errors.New("--peer-ca and --tls-client-ca hold the same authority: each client could speak as a " +
				"node. Make an authority for nodes alone, as the guide to clusters shows")
		}
	}
	return nil
}

// keysOfPEM returns the public keys of the certificates in text.
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
	p.pointers = catalog.PointersOf(made)
	p.server.Handler = unlessGone(cluster.Arrive(handler))
}

// restRouter returns the router for rest; nil if nothing is forwarded.
func (p *peers) restRouter() rest.Router {
	if p == nil {
		return nil
	}
	return p.router
}

// raceLost returns a function that a catalog calls when a commit lost a race.
func (p *peers) raceLost(metrics prometheus.Registerer) func(registry.ID) {
	lost := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "moorage_commit_races_lost_total",
		Help: "Attempts to commit to one table or view that another commit, nearly always on another node, " +
			"was faster than.",
	})
	metrics.MustRegister(lost)
	return func(pointer registry.ID) {
		lost.Inc()
		if p != nil {
			p.heat.Lost(cluster.Pointer(pointer))
		}
	}
}

// start answers other nodes, and joins them.
func (p *peers) start() {
	if p == nil {
		return
	}
	p.server.ErrorLog = slog.NewLogLogger(p.logger.Handler(), slog.LevelWarn)
	p.serving = make(chan error, 1)
	go func() { p.serving <- p.server.ServeTLS(p.listener, "", "") }()
	p.membership.Start()
}

// leave takes the node out of the cluster: other nodes send it no more requests.
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

// close ends the requests of other nodes, after timeout at the latest. The node must have left.
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

// meterForwards returns a function that counts requests to be forwarded, by result.
func meterForwards(metrics prometheus.Registerer) func(cluster.Result) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "moorage_forwarded_total",
		Help: "Commits meant for the owner of their table, by result; after all but answered this node carried " +
			"them out.",
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
			Help: "Nodes that answer other nodes, as this one sees them.",
		}, func() float64 { return float64(len(membership.View().Members)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "moorage_cluster_view",
			Help: "Number of the view of the members that this node has; nodes with one number agree.",
		}, func() float64 { return float64(membership.View().Number) }),
	)
}
