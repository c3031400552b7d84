package s3

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"moorage/storage"
)

const (
	// signProbeRequestsMax and signProbeMax limit the requests and the duration of one probe of
	// signing.
	signProbeRequestsMax = 40
	signProbeMax         = 20 * time.Second
	// signProbeAge is the lifetime of a probe's findings. They expire because operators update
	// storages.
	signProbeAge = 24 * time.Hour
	// signProbePause is the pause after a failed probe before the next probe. The old findings are
	// used during that time.
	signProbePause = time.Minute
)

// ProbeSigning replays signed requests in a folder below the first root. Each replay changes one
// part that decides which object the request affects or what it does. ProbeSigning writes a few
// small objects and deletes them. If the server does not check such a part, Sign no longer signs
// calls that have that part; see Features. If reads or writes are among them, it returns
// ErrUnenforced.
func (s *Store) ProbeSigning(ctx context.Context) error {
	found, err := s.probeSigning(ctx)
	if err != nil {
		return err
	}
	for _, call := range []string{callGet, callHead, callPut} {
		if why, ok := found.withheld[call]; ok {
			return fmt.Errorf("%w: %s %s", storage.ErrUnenforced, call, why)
		}
	}
	return nil
}

// probeSigning runs a probe, or waits for the probe of another caller, and keeps the findings for
// all stores of the client. The server checks signatures in the same way in all of its buckets.
func (s *Store) probeSigning(ctx context.Context) (*signFindings, error) {
	known := &s.client.signing
	known.mu.Lock()
	if under := known.probing; under != nil {
		known.mu.Unlock()
		select {
		case <-under:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", storage.ErrUnavailable, ctx.Err())
		}
		known.mu.Lock()
		defer known.mu.Unlock()
		return known.found, known.err
	}
	done := make(chan struct{})
	known.probing = done
	known.mu.Unlock()

	// Other callers also wait for the probe, so it must not end when the first caller goes away.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), signProbeMax)
	defer cancel()
	found, err := s.runSignProbe(ctx)

	known.mu.Lock()
	defer known.mu.Unlock()
	if known.err = err; err == nil {
		known.found = found
	} else if known.found != nil {
		known.found = &signFindings{
			at: s.client.now().Add(signProbePause - signProbeAge), withheld: known.found.withheld,
		}
	}
	known.probing = nil
	close(done)
	return found, err
}

func (s *Store) runSignProbe(ctx context.Context) (*signFindings, error) {
	if len(s.roots) == 0 {
		return nil, errors.New("s3: there is no location in which to try signatures")
	}
	root := s.roots[0]
	folder, err := s.client.probeFolder(root.Path[1:])
	if err != nil {
		return nil, err
	}
	probe := &signProbe{
		store: s, bucket: root.Authority, inside: folder, beside: folder + "y", withheld: make(map[string]string),
	}
	return probe.run(ctx)
}

// checkSigned returns ErrNotSigned if a call is not signed for this server. If the findings are
// older than a day, it runs a probe first. ErrUnavailable means that the probe failed.
func (s *Store) checkSigned(ctx context.Context, call string) error {
	known := &s.client.signing
	known.mu.Lock()
	found, busy := known.found, known.probing != nil
	known.mu.Unlock()
	if isOld := found == nil || s.client.now().Sub(found.at) > signProbeAge; found == nil || isOld && !busy {
		fresh, err := s.probeSigning(ctx)
		if err != nil && found == nil {
			return fmt.Errorf("%w: could not find out which parts of a signed request the storage checks: %w",
				storage.ErrUnavailable, err)
		}
		if err == nil {
			found = fresh
		}
	}
	if why, ok := found.withheld[call]; ok {
		return notSigned("%s %s", call, why)
	}
	return nil
}

// signFeatures describes the calls that are not signed.
func (c *Client) signFeatures() (features []storage.Feature) {
	c.signing.mu.Lock()
	defer c.signing.mu.Unlock()
	if c.signing.found == nil {
		return nil
	}
	byReason := make(map[string][]string)
	for _, call := range slices.Sorted(maps.Keys(c.signing.found.withheld)) {
		why := c.signing.found.withheld[call]
		byReason[why] = append(byReason[why], call)
	}
	for _, why := range slices.Sorted(maps.Keys(byReason)) {
		features = append(features, storage.Feature{
			Name: "remote signing", Value: strings.Join(byReason[why], ", ") + " " + why,
		})
	}
	return features
}
