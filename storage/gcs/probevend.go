package gcs

import (
	"context"
	"errors"
	"net/http"
	"time"

	"moorage/storage"
	"moorage/storage/cloud"
)

// ProbeVending issues credentials for a folder below each root. It tries them in the folder, and in
// siblings that a server may confuse with the folder. It writes a few small objects and deletes
// them.
func (s *Store) ProbeVending(ctx context.Context) error {
	roots, buckets := s.roots.Shortest()
	for _, bucket := range buckets {
		id, err := cloud.NewWriteID(s.client.random)
		if err == nil {
			err = s.newVendProbe(bucket, cloud.Below(roots[bucket])+cloud.ProbePrefix+id).Run(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// probeMetadata is a metadata file of the catalog, in a table that sets write.metadata.path.
const probeMetadata = "/own/folder/0" + storage.MetadataEnding

// newVendProbe returns the probe of a bucket. The probe makes folder.
func (s *Store) newVendProbe(bucket, folder string) cloud.VendingProbe {
	own := engine{s.client, bucket}
	return cloud.VendingProbe{
		Folder: folder, Storage: "gcs", Place: "the bucket " + bucket, Maker: "the security token service",
		Hint: ". The account needs the role Storage Object User on the bucket " + bucket,
		Own:  own,
		Vend: func(ctx context.Context, write bool) (cloud.Engine, error) {
			client, err := s.probeClient(ctx, own.object(folder).location, write)
			return engine{client, bucket}, err
		},
		Forbidden: func(engine cloud.Engine, write bool) []cloud.Trial {
			trials := []cloud.Trial{
				{What: "list names that begin with their folder's name", Do: engine.List, Name: folder},
				{What: "list the whole bucket", Do: engine.List, Name: ""},
			}
			if write {
				trials = append(trials, cloud.Trial{
					What: "write a metadata file", Do: engine.Write, Name: folder + probeMetadata,
				})
			}
			return trials
		},
		IsRefused: func(err error) bool { return statusOf(err) == http.StatusForbidden },
		Left:      []string{folder + probeMetadata},
		Delete: func(ctx context.Context, names []string) error {
			objects := make([]object, len(names))
			for i, name := range names {
				objects[i] = own.object(name)
			}
			return errors.Join(s.client.deleteObjects(ctx, objects)...)
		},
	}
}

// probeClient returns a client with credentials for the location of a probe.
func (s *Store) probeClient(ctx context.Context, location string, write bool) (*Client, error) {
	made, err := s.Vend(ctx, storage.Scope{Locations: []string{location}, Write: write, Session: "probe"})
	if err != nil {
		return nil, err
	}
	own := s.client
	fixed := func(context.Context) (token, error) { return token{made.Config[configToken], made.Expires}, nil }
	return &Client{
		http: own.http, endpoint: own.endpoint, random: own.random, retryDelayMax: own.retryDelayMax,
		tokens: &tokens{make: fixed, now: func() time.Time { return made.Expires }},
	}, nil
}

// engine sends the requests of engines to a bucket. It implements cloud.Engine.
type engine struct {
	client *Client
	bucket string
}

func (e engine) object(name string) object {
	location := storage.Location{Scheme: storage.SchemeGCS, Authority: e.bucket, Path: "/" + name}
	return object{location: location.String(), bucket: e.bucket, name: name}
}

// Write makes an object.
func (e engine) Write(ctx context.Context, name string) error {
	id, err := cloud.NewWriteID(e.client.random)
	if err != nil {
		return err
	}
	return e.client.insert(ctx, e.object(name), []byte("probe"), id)
}

// Read requests an object, but does not read its content.
func (e engine) Read(ctx context.Context, name string) error {
	body, _, err := e.client.open(ctx, e.object(name))
	if err != nil {
		return err
	}
	return body.Close()
}

// List requests a page with one object.
func (e engine) List(ctx context.Context, prefix string) error {
	_, _, err := e.client.list(ctx, e.bucket, prefix, "", 1)
	return err
}

// Delete sends a bulk delete, which can be refused as a whole or for the object.
func (e engine) Delete(ctx context.Context, name string) error {
	answers, err := e.client.deleteBatch(ctx, []object{e.object(name)})
	if err != nil {
		return err
	}
	return answers[0]
}
