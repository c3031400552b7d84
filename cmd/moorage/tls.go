package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"moorage/internal/cli"
)

// tlsLookInterval is the time between two checks of the TLS files for changes.
const tlsLookInterval = 10 * time.Second

// tlsFiles manages the server's certificate, its key, and the authorities of clients. It reads
// their files again when these change. It is safe for concurrent use.
type tlsFiles struct {
	certificate, key, clientCA string // paths; clientCA may be empty
	now                        func() time.Time
	logger                     *slog.Logger

	mu     sync.Mutex // guards the fields below; held during reads of small local files, never with another lock
	looked time.Time
	read   [3][]byte // the last contents of the files
	config *tls.Config
}

// openTLS returns the TLS configuration of the server, or nil if it uses plain HTTP.
func openTLS(c cli.Config, now func() time.Time, logger *slog.Logger) (*tls.Config, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	files := &tlsFiles{certificate: c.TLSCert, key: c.TLSKey, clientCA: c.TLSClientCA, now: now, logger: logger}
	if err := files.look(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return files.current(), nil },
		// net/http requires this function, but clients get the certificate of GetConfigForClient.
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &files.current().Certificates[0], nil
		},
	}, nil
}

// current returns the configuration for a connection. If the files cannot be used, the last
// configuration stays in use, because the certificate and the key are usually written one after the
// other.
func (f *tlsFiles) current() *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Sub(f.looked) >= tlsLookInterval {
		if err := f.lookLocked(); err != nil {
			f.logger.Warn("the files of TLS cannot be used; those read before serve on", "error", err)
		}
	}
	return f.config
}

func (f *tlsFiles) look() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lookLocked()
}

// lookLocked reads the files, and makes a configuration if they changed. f.mu must be held.
func (f *tlsFiles) lookLocked() error {
	f.looked = f.now()
	var read [3][]byte
	for i, path := range []string{f.certificate, f.key, f.clientCA} {
		if path == "" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read the files of TLS: %w", err)
		}
		read[i] = text
	}
	if f.config != nil && slices.EqualFunc(read[:], f.read[:], bytes.Equal) {
		return nil
	}
	pair, err := tls.X509KeyPair(read[0], read[1])
	if err != nil {
		return fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	}
	if f.clientCA != "" {
		config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(read[2]) {
			return errors.New("--tls-client-ca: it holds no certificate")
		}
	}
	if f.config != nil {
		f.logger.Info("the files of TLS were read again")
		// Warn now, without waiting for the daily round
		if ends := pair.Leaf.NotAfter; ends.Sub(f.now()) < certificateWarnBefore {
			f.logger.Warn("a certificate ends soon or has ended: put another one into its file",
				"setting", "--tls-cert", "file", f.certificate, "ends", ends)
		}
	}
	f.read, f.config = read, config
	return nil
}
