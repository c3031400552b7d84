package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"sync"
	"time"

	"moorage/internal/cli"
	"moorage/internal/loopback"
)

// debugConnectionsMax is the maximum number of connections to --debug-listen, which has few
// clients.
const debugConnectionsMax = 64

// serveDebug answers probes and profiles on the port of --debug-listen, if there is one, until stop
// is called.
func serveDebug(ctx context.Context, c cli.Config, probes http.Handler, logger *slog.Logger) (stop func(), err error) {
	if c.DebugListen == "" {
		return func() {}, nil
	}
	listener, err := openPort(ctx, c.DebugListen, "--debug-listen")
	if err != nil {
		return nil, err
	}
	server := newServer(withProfiles(probes))
	server.ReadTimeout = readHeaderTimeout // its requests have no bodies
	var serving sync.WaitGroup
	serving.Go(func() {
		err := server.Serve(boundListener(listener, debugConnectionsMax, nil))
		if !errors.Is(err, http.ErrServerClosed) {
			logger.Error("the port of --debug-listen is closed: start the server again", "error", err)
		}
	})
	logger.Info("metrics need no key on the port of --debug-listen", "uri", "http://"+listener.Addr().String())
	return func() {
		_ = server.Close() // probes in progress may fail
		serving.Wait()
	}, nil
}

// profilesPath is the path of profiles that go tool pprof expects.
const profilesPath = "/debug/pprof/"

// withProfiles adds the profiles of net/http/pprof to probes. Only clients on this machine get
// them, because a profile shows what the server does, and takes processor time. The page with the
// command line is left out, because a flag can contain the password of a database.
func withProfiles(probes http.Handler) http.Handler {
	profiles := http.NewServeMux()
	profiles.HandleFunc(profilesPath, pprof.Index)
	profiles.HandleFunc(profilesPath+"profile", pprof.Profile)
	profiles.HandleFunc(profilesPath+"trace", pprof.Trace)
	debug := http.NewServeMux()
	debug.Handle("/", probes)
	debug.HandleFunc(profilesPath, func(w http.ResponseWriter, r *http.Request) {
		if !isOfThisMachine(r) {
			http.NotFound(w, r)
			return
		}
		// Taking a profile may exceed the deadline for the arrival of a request.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		profiles.ServeHTTP(w, r)
	})
	return debug
}

// isOfThisMachine reports whether the sender of a request is a program on this machine. The host in
// the request must be a loopback address too. Otherwise the author of a web page could point a
// domain name at this address, and read the answer.
func isOfThisMachine(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() && loopback.Is(r.Host)
}
