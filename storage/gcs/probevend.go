package gcs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"moorage/storage"
)

// ProbeVending issues credentials for a folder below each root and tries them there, and in
// siblings that a server may confuse with it. One sibling has a similar name, and one differs in
// upper and lower case. It writes a few small objects and deletes them.
func (s *Store) ProbeVending(ctx context.Context) error {
	roots, buckets := s.rootNames()
	for _, bucket := range buckets {
		id, err := s.client.draw()
		if err == nil {
			err = s.newVendProbe(bucket, under(roots[bucket]), probePrefix+id).run(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// vendProbe is the probe of one bucket.
type vendProbe struct {
	store  *Store
	bucket string
	inside string    // name of the folder, without a slash at the end
	beside []sibling // folders outside the credentials' scope
}

// sibling is a folder that a server may confuse with another.
type sibling struct{ what, folder string }

// Names of objects below the folders of a probe: one that exists, and one that does not.
const (
	probeData = "/data"
	probeNew  = "/new"
	// probeMetadata is a metadata file of the catalog, in a table that sets write.metadata.path.
	probeMetadata = "/own/folder/0" + storage.MetadataEnding
)

func (s *Store) newVendProbe(bucket, above, name string) *vendProbe {
	return &vendProbe{store: s, bucket: bucket, inside: above + name, beside: []sibling{
		{"a folder whose name begins like that of theirs", above + name + "y"},
		{"a folder whose name differs from that of theirs in upper and lower case", above + strings.ToUpper(name)},
	}}
}

// run performs the probe, and deletes the objects that it may have written.
func (p *vendProbe) run(ctx context.Context) (err error) {
	own := p.store.client
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeEndTimeout)
		defer cancel()
		left := []object{
			p.object(p.inside + probeData), p.object(p.inside + probeNew), p.object(p.inside + probeMetadata),
		}
		for _, other := range p.beside {
			left = append(left, p.object(other.folder+probeData), p.object(other.folder+probeNew))
		}
		if failures := own.deleteObjects(ctx, left); len(failures) > 0 {
			err = errors.Join(err, fmt.Errorf("delete what the probe wrote: %w", errors.Join(failures...)))
		}
	}()
	for _, other := range p.beside {
		if err := p.writes(own, other.folder+probeData)(ctx); err != nil {
			return fmt.Errorf("write %s with the server's own token: %w", other.folder+probeData, err)
		}
	}
	for _, write := range []bool{true, false} {
		engine, err := p.vend(ctx, write)
		if err != nil {
			return err
		}
		if err := p.allowed(ctx, engine, write); err != nil {
			return err
		}
		if err := p.refused(ctx, engine, write); err != nil {
			return err
		}
	}
	return nil
}

// vend returns a client with credentials for the folder inside.
func (p *vendProbe) vend(ctx context.Context, write bool) (*Client, error) {
	location := p.object(p.inside).location
	made, err := p.store.Vend(ctx, storage.Scope{Locations: []string{location}, Write: write, Session: "probe"})
	if err != nil {
		return nil, err
	}
	own := p.store.client
	fixed := func(context.Context) (token, error) { return token{made.Config[configToken], made.Expires}, nil }
	return &Client{
		http: own.http, endpoint: own.endpoint, random: own.random, retryDelayMax: own.retryDelayMax,
		tokens: &tokens{make: fixed, now: func() time.Time { return made.Expires }},
	}, nil
}

// trial is a request that must be allowed, or must be refused.
type trial struct {
	what string
	do   func(context.Context) error
}

// allowed returns an error if the credentials do not reach their scope.
func (p *vendProbe) allowed(ctx context.Context, engine *Client, write bool) error {
	var trials []trial
	if write {
		trials = append(trials, trial{"write in", p.writes(engine, p.inside+probeData)})
	}
	trials = append(trials, trial{"read in", p.reads(engine, p.inside+probeData)},
		trial{"list", p.lists(engine, p.inside+"/")})
	for _, each := range trials {
		if err := each.do(ctx); err != nil {
			return fmt.Errorf("gcs: the credentials cannot %s the folder they are for. "+
				"The account needs the role Storage Object User on the bucket %s: %w", each.what, p.bucket, err)
		}
	}
	return nil
}

// refused returns ErrUnenforced if the credentials reach beyond their scope.
func (p *vendProbe) refused(ctx context.Context, engine *Client, write bool) error {
	for _, each := range p.forbidden(engine, write) {
		err := each.do(ctx)
		if err == nil {
			return fmt.Errorf("%w: in the bucket %s its credentials can %s", storage.ErrUnenforced, p.bucket, each.what)
		}
		if statusOf(err) != http.StatusForbidden {
			return fmt.Errorf("gcs: find out whether credentials can %s: %w", each.what, err)
		}
	}
	return nil
}

// forbidden returns the requests that must be refused to the credentials.
func (p *vendProbe) forbidden(engine *Client, write bool) []trial {
	var trials []trial
	for _, other := range p.beside {
		trials = append(trials,
			trial{"read in " + other.what, p.reads(engine, other.folder+probeData)},
			trial{"write in " + other.what, p.writes(engine, other.folder+probeNew)},
			trial{"list " + other.what, p.lists(engine, other.folder+"/")},
			trial{"delete in " + other.what, p.deletes(engine, other.folder+probeData)})
	}
	trials = append(trials, trial{"list everything that begins like their folder", p.lists(engine, p.inside)},
		trial{"list the whole bucket", p.lists(engine, "")})
	if write {
		trials = append(trials, trial{"write a metadata file", p.writes(engine, p.inside+probeMetadata)})
	} else {
		trials = append(trials,
			trial{"write, and are for reading", p.writes(engine, p.inside+probeNew)},
			trial{"delete, and are for reading", p.deletes(engine, p.inside+probeData)})
	}
	return trials
}

func (p *vendProbe) object(name string) object {
	location := storage.Location{Scheme: storage.SchemeGCS, Authority: p.bucket, Path: "/" + name}
	return object{location: location.String(), bucket: p.bucket, name: name}
}

func (p *vendProbe) writes(client *Client, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		id, err := client.draw()
		if err != nil {
			return err
		}
		return client.insert(ctx, p.object(name), []byte("probe"), id)
	}
}

func (p *vendProbe) reads(client *Client, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		body, _, err := client.open(ctx, p.object(name))
		if err != nil {
			return err
		}
		return body.Close()
	}
}

func (p *vendProbe) lists(client *Client, prefix string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, _, err := client.list(ctx, p.bucket, prefix, "", 1)
		return err
	}
}

// deletes sends a bulk delete, which can be refused as a whole or for the object.
func (p *vendProbe) deletes(client *Client, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		answers, err := client.deleteBatch(ctx, []object{p.object(name)})
		if err != nil {
			return err
		}
		return answers[0]
	}
}
