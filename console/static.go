package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"moorage"
)

//go:embed static
var static embed.FS

// file is a file of the console: its style, or a script.
type file struct {
	content []byte
	kind    string // Content-Type
	version string // differs between contents
}

// staticFiles returns the files by name.
func staticFiles() map[string]file {
	files := map[string]file{}
	entries, err := fs.ReadDir(static, "static")
	if err != nil {
		panic(err) // the files are part of the binary
	}
	for _, entry := range entries {
		content, err := fs.ReadFile(static, "static/"+entry.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		made := file{content: content, version: hex.EncodeToString(sum[:6])}
		switch path.Ext(entry.Name()) {
		case ".css":
			made.kind = "text/css; charset=utf-8"
		case ".js":
			made.kind = "text/javascript; charset=utf-8"
		case ".svg":
			made.kind = "image/svg+xml"
		}
		files[entry.Name()] = made
	}
	return files
}

// serveFile answers with a file. A browser keeps a file whose address has its version.
func (c *console) serveFile(w http.ResponseWriter, r *http.Request, name string) error {
	found, ok := c.files[name]
	if !ok {
		return moorage.Errorf(moorage.KindNotFound, "The console has no file %q",
			moorage.Cut(name, moorage.ShownBytesMax))
	}
	header := w.Header()
	guard(header)
	header.Set("Content-Type", found.kind)
	header.Set("ETag", `"`+found.version+`"`)
	header.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == found.version {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if strings.Contains(r.Header.Get("If-None-Match"), found.version) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	header.Set("Content-Length", strconv.Itoa(len(found.content)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(found.content) // if this fails, the client has disconnected
	}
	return nil
}

// guard sets the headers that keep other pages and hostile texts away from the console.
func guard(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "+
		"img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
}
