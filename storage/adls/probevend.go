package adls

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"moorage/storage"
)

// ProbeVending issues credentials for a folder below each root and tries them there, and in folders
// whose names Azure may confuse with it. It writes a few small blobs and deletes them.
func (s *Store) ProbeVending(ctx context.Context) error {
	for _, root := range s.roots {
		if err := s.probeVending(ctx, root); err != nil {
			return err
		}
	}
	return nil
}

// vendProbe is the probe below one root.
type vendProbe struct {
	store    *Store
	location storage.Location // of the folder in the credentials' scope
	inside   blobName         // a blob in it
	beside   []sibling
}

// sibling is a blob outside the credentials' scope.
type sibling struct {
	what string // where it is
	blob blobName
}

func (s *Store) probeVending(ctx context.Context, root storage.Location) (err error) {
	folder, err := s.probed(root, newWriteID())
	if err != nil {
		return err
	}
	p := &vendProbe{store: s, location: root, inside: folder.below("/data"), beside: []sibling{
		{"a folder whose name begins like that of theirs", folder.below("y/data")},
		{"a folder whose name differs from that of theirs in upper and lower case",
			folder.besides(probePrefix, strings.ToUpper(probePrefix)).below("/data")},
	}}
	p.location.Path = "/" + folder.name
	defer func() { err = errors.Join(err, p.clean(ctx)) }()
	for _, other := range p.beside {
		if err := other.blob.create(ctx, []byte("theirs")); err != nil {
			return explain(err)
		}
	}
	for _, write := range []bool{true, false} {
		if err := p.try(ctx, write); err != nil {
			return err
		}
	}
	return nil
}

// clean deletes all blobs that the probe may have written, and the folders that Azure made for
// them.
func (p *vendProbe) clean(ctx context.Context) (err error) {
	for _, written := range append(p.beside, sibling{blob: p.inside}) {
		err = errors.Join(err, written.blob.remove(ctx), written.blob.below("2").remove(ctx),
			written.blob.parent().remove(ctx))
	}
	return err
}

// below returns the blob whose name is b's name followed by suffix.
func (b blobName) below(suffix string) blobName {
	b.name, b.location = b.name+suffix, b.location+suffix
	return b
}

// besides returns the sibling blob whose name's last segment begins with other instead of prefix.
func (b blobName) besides(prefix, other string) blobName {
	folder := b.name[:strings.LastIndexByte(b.name, '/')+1]
	b.location = strings.TrimSuffix(b.location, b.name)
	b.name = folder + other + strings.TrimPrefix(b.name[len(folder):], prefix)
	b.location += b.name
	return b
}

// parent returns the folder of a blob.
func (b blobName) parent() blobName {
	b.name = b.name[:strings.LastIndexByte(b.name, '/')]
	b.location = b.location[:strings.LastIndexByte(b.location, '/')]
	return b
}

// trial is a request that must be allowed, or must be refused.
type trial struct {
	what string
	do   func(context.Context) error
}

// try issues credentials, to write or only to read, and tries them.
func (p *vendProbe) try(ctx context.Context, write bool) error {
	made, err := p.store.Vend(ctx, storage.Scope{
		Locations: []string{p.location.String()}, Write: write, Session: "probe", Duration: durationMin,
	})
	if err != nil {
		return err
	}
	engine, err := p.store.client.engine(p.inside.account, made.Config[configSAS])
	if err != nil {
		return err
	}
	for _, each := range p.allowed(engine, write) {
		if err := each.do(ctx); err != nil {
			return fmt.Errorf("adls: the credentials that the server makes cannot %s the folder they are for: %w",
				each.what, err)
		}
	}
	for _, each := range p.forbidden(engine, write) {
		err := each.do(ctx)
		if err == nil {
			return fmt.Errorf("%w: in the container %s of %s credentials can %s", storage.ErrUnenforced,
				p.inside.container, p.inside.account.name, each.what)
		}
		if status := statusOf(err); status != http.StatusForbidden && status != http.StatusUnauthorized {
			return fmt.Errorf("adls: find out whether credentials can %s: %w", each.what, err)
		}
	}
	return nil
}

// engine returns the account as an engine with only a signature reaches it.
func (c *Client) engine(reached *account, signature string) (*account, error) {
	core := c.core
	core.PerCallPolicies = []policy.Policy{pinVersion{}}
	client, err := service.NewClientWithNoCredential(reached.service.URL()+"?"+signature,
		&service.ClientOptions{ClientOptions: core})
	if err != nil {
		return nil, shorten(err)
	}
	return &account{name: reached.name, service: client}, nil
}

// by returns the blob as engine reaches it.
func (b blobName) by(engine *account) blobName {
	b.account = engine
	return b
}

// allowed returns the requests that must be allowed to the credentials.
func (p *vendProbe) allowed(engine *account, write bool) []trial {
	var trials []trial
	if write {
		trials = append(trials, trial{"write in", p.inside.by(engine).writes})
	}
	return append(trials, trial{"read in", p.inside.by(engine).reads},
		trial{"list", p.inside.parent().below("/").by(engine).lists})
}

// forbidden returns the requests that must be refused to the credentials.
func (p *vendProbe) forbidden(engine *account, write bool) []trial {
	var trials []trial
	for _, other := range p.beside {
		theirs := other.blob.by(engine)
		trials = append(trials,
			trial{"read in " + other.what, theirs.reads},
			trial{"write in " + other.what, theirs.below("2").writes},
			trial{"list " + other.what, theirs.parent().below("/").lists},
			trial{"delete in " + other.what, theirs.deletes})
	}
	above := p.inside.parent().parent().below("/")
	trials = append(trials, trial{"list the folder above theirs", above.by(engine).lists})
	if !write {
		trials = append(trials,
			trial{"write, and are for reading", p.inside.below("2").by(engine).writes},
			trial{"delete, and are for reading", p.inside.by(engine).deletes})
	}
	return trials
}

func (b blobName) reads(ctx context.Context) error {
	body, _, err := b.get(ctx)
	if err != nil {
		return err
	}
	return body.Close()
}

func (b blobName) writes(ctx context.Context) error { return b.put(ctx, []byte("probe"), newWriteID()) }

func (b blobName) lists(ctx context.Context) error {
	_, err := b.list(ctx, "", 1)
	return err
}

func (b blobName) deletes(ctx context.Context) error {
	if _, err := b.client().Delete(ctx, nil); err != nil {
		return shorten(err)
	}
	return nil
}

var (
	_ storage.Vender  = (*Store)(nil)
	_ storage.Limited = (*Store)(nil)
)
