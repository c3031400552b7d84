package adls

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"moorage/storage"
	"moorage/storage/cloud"
)

// ProbeVending issues credentials for a folder below each root. It tries them in that folder, and
// in folders with names that Azure may confuse with it. It writes a few small blobs and deletes
// them.
func (s *Store) ProbeVending(ctx context.Context) error {
	for _, root := range s.roots {
		folder, err := s.probed(root, newWriteID())
		if err != nil {
			return err
		}
		if err := s.newVendProbe(root, folder).Run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// newVendProbe returns the probe below root. The probe makes folder.
func (s *Store) newVendProbe(root storage.Location, folder blobName) cloud.VendingProbe {
	own := engine{folder: folder, isOwn: true}
	return cloud.VendingProbe{
		Folder: folder.name, Storage: "adls", Maker: "the server",
		Place: "the container " + folder.container + " of " + folder.account.name,
		Own:   own,
		Vend: func(ctx context.Context, write bool) (cloud.Engine, error) {
			location := root
			location.Path = "/" + folder.name
			return s.newEngine(ctx, folder, location.String(), write)
		},
		Forbidden: func(engine cloud.Engine, _ bool) []cloud.Trial {
			above := folder.name[:strings.LastIndexByte(folder.name, '/')+1]
			return []cloud.Trial{{What: "list the folder above theirs", Do: engine.List, Name: above}}
		},
		IsRefused: func(err error) bool {
			status := statusOf(err)
			return status == http.StatusForbidden || status == http.StatusUnauthorized
		},
		Delete: func(ctx context.Context, names []string) error {
			var blobs, folders []blobName
			deleted := make(map[string]bool) // folders that were already collected
			for _, name := range names {
				blobs = append(blobs, own.blob(name))
				if folder := name[:strings.LastIndexByte(name, '/')]; !deleted[folder] {
					deleted[folder] = true
					folders = append(folders, own.blob(folder))
				}
			}
			// Azure has made the folders of the blobs. It refuses to delete a folder that is not
			// empty, so delete the blobs first.
			return errors.Join(append(deleteAll(ctx, blobs), deleteAll(ctx, folders)...)...)
		},
	}
}

// newEngine returns an engine that has credentials for a location.
func (s *Store) newEngine(ctx context.Context, folder blobName, location string, write bool) (cloud.Engine, error) {
	made, err := s.Vend(ctx, storage.Scope{
		Locations: []string{location}, Write: write, Session: "probe", Duration: durationMin,
	})
	if err != nil {
		return nil, err
	}
	if folder.account, err = s.client.engine(folder.account, made.Config[configSAS]); err != nil {
		return nil, err
	}
	return engine{folder: folder}, nil
}

// engine returns a copy of the account that is reached as engines reach it: with only a signature.
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

// engine sends the requests of engines to the container of a folder. It implements cloud.Engine.
type engine struct {
	folder blobName
	isOwn  bool // uses the server's own identity, so a refusal means that a role is missing
}

// blob returns the blob with a name.
func (e engine) blob(name string) blobName {
	b := e.folder
	b.location = strings.TrimSuffix(b.location, b.name) + name
	b.name = name
	return b
}

// Read requests a blob, but does not read its content.
func (e engine) Read(ctx context.Context, name string) error {
	body, _, err := e.blob(name).get(ctx)
	if err != nil {
		return err
	}
	return body.Close()
}

// Write makes a blob. With the server's own credentials, it also finds out whether a write
// succeeded whose answer was lost.
func (e engine) Write(ctx context.Context, name string) error {
	if e.isOwn {
		return explain(e.blob(name).create(ctx, []byte("probe")))
	}
	return e.blob(name).put(ctx, []byte("probe"), newWriteID())
}

// List requests a page with one blob.
func (e engine) List(ctx context.Context, prefix string) error {
	_, err := e.blob(prefix).list(ctx, "", 1)
	return err
}

// Delete deletes a blob.
func (e engine) Delete(ctx context.Context, name string) error {
	if _, err := e.blob(name).client().Delete(ctx, nil); err != nil {
		return shorten(err)
	}
	return nil
}

var (
	_ storage.Vender  = (*Store)(nil)
	_ storage.Limited = (*Store)(nil)
)
