package rest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/vending"
	"moorage/internal/jsontext"
	"moorage/internal/web"
)

// headerVaryLoad is the header Vary of responses that also depend on the access that a client
// requests.
var headerVaryLoad = []string{"Accept-Encoding, X-Iceberg-Access-Delegation"}

// headerVaryCredential is the header Vary of responses with a credential, which is for one caller.
var headerVaryCredential = []string{"Accept-Encoding, X-Iceberg-Access-Delegation, Authorization"}

// answerForm selects the parts of a table in a response, and the kind of load for which the
// response's ETag is valid.
type answerForm struct {
	refs   bool // only snapshots to which a branch or tag points
	config bool // with the client's configuration
	tag    bool // with an ETag
}

var (
	loadAnswer     = answerForm{config: true, tag: true}
	loadRefsAnswer = answerForm{config: true, tag: true, refs: true}
	commitAnswer   = answerForm{tag: true}
	lastAnswer     = answerForm{} // for a table that can no longer be loaded
)

// loadTable answers with the current version of a table, or 304 if the client already has it.
func (s *server) loadTable(w http.ResponseWriter, r *http.Request) error {
	ident, err := pathIdentifier(r, paramTable)
	if err != nil {
		return err
	}
	form := loadAnswer
	switch mode, given, err := web.QueryOf(r).Text("snapshots"); {
	case err != nil:
		return err
	case given && mode == "refs":
		form = loadRefsAnswer
	case given && mode != "all":
		return moorage.Errorf(moorage.KindBadRequest, "Invalid snapshots: %q, want all or refs", mode)
	}
	through, err := referencedBy(r, ident.Warehouse)
	if err != nil {
		return err
	}
	table, err := s.catalogFor(r).LoadTable(r.Context(), ident, through...)
	if err != nil {
		return err
	}
	return s.answerTable(w, r, table, form)
}

// answerTable answers with one version of a table. The response has the bytes of the document,
// surrounded by the location and the caller's configuration.
func (s *server) answerTable(w http.ResponseWriter, r *http.Request, table *catalog.Table, form answerForm) error {
	var given vending.Delegated
	if asked := asksFor(r); form.config && len(asked) > 0 {
		var err error
		if given, err = s.catalogFor(r).Delegate(r.Context(), table, asked); err != nil {
			return err
		}
	}
	config, err := encodeConfig(table.Config)
	if err != nil {
		return err
	}
	if config, err = s.withAccess(r, table.Identifier, config, given); err != nil {
		return err
	}
	w.Header()["Vary"] = headerVaryLoad
	tag := ""
	if form.tag && table.MetadataLocation != "" {
		tag = loadTag(r, table, config, given.Version, form)
		if r.Method == http.MethodGet && matchesAny(r.Header["If-None-Match"], tag) {
			w.Header()["ETag"] = []string{tag}
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	text, beside := table.Document.Raw(), int64(0)
	if form.refs {
		text, beside = table.Document.RawRefs(), int64(len(text))
	}
	labels := table.Labels.Text
	if !form.config {
		config, labels = nil, nil
	}
	if given.Encoded != nil {
		w.Header()["Cache-Control"], w.Header()["Vary"] = headerPrivate, headerVaryCredential
	}
	return s.answerDocument(w, r, document{
		location: table.MetadataLocation, text: text, beside: beside, config: config, labels: labels,
		credential: given.Encoded, prefix: given.Prefix,
		signs: form.config && given.Delegation == vending.RemoteSigning, tag: tag, key: keyOf(table, form)})
}

// document is the text of a metadata document, with the other parts of a response.
type document struct {
	location string // of the metadata file; empty if there is no file
	text     []byte // not empty
	beside   int64  // further bytes that stay in memory as long as text does
	config   []byte // JSON; nil for none
	labels   []byte // JSON; nil for none
	// credential is a JSON object, or nil if there is no credential. It is secret. prefix is the
	// location prefix for which the credential is valid.
	credential []byte
	prefix     string
	signs      bool          // the client may have its requests to the storage signed
	tag        string        // the ETag; empty for none
	key        compressedKey // identifies text
}

// envelope has the bytes before and after a document in one response. It is made for each response,
// in reused memory. So no response contains another caller's data. A cache of complete responses
// would need a limit, and would save little, because head and tail are short.
type envelope struct{ head, tail []byte }

// envelopeBytesMax is the size up to which the memory of an envelope is reused. Most envelopes have
// about 200 bytes.
const envelopeBytesMax = 16 << 10

// fill sets e to the envelope of d.
func (e *envelope) fill(d document) {
	e.head, e.tail = append(e.head[:0], '{'), e.tail[:0]
	if d.location != "" {
		e.head = append(e.head, `"metadata-location":`...)
		e.head = append(jsontext.AppendQuoted(e.head, d.location), ',')
	}
	e.head = append(e.head, `"metadata":`...)
	if d.config != nil {
		e.tail = appendConfig(append(e.tail, `,"config":`...), d.config, d.credential) // some clients read only config
	}
	if d.labels != nil {
		e.tail = append(append(e.tail, `,"labels":`...), d.labels...)
	}
	if d.credential != nil {
		e.tail = appendCredential(append(e.tail, `,"storage-credentials":`...), d.prefix, d.config, d.credential)
	}
	if d.signs { // newer clients look for this member; it may be empty
		e.tail = append(e.tail, `,"remote-signing-config":{}`...)
	}
	e.tail = append(e.tail, '}')
}

// answerDocument answers 200 with d, compressed if the client accepts that. It does not parse
// d.text.
func (s *server) answerDocument(w http.ResponseWriter, r *http.Request, d document) error {
	e := s.envelopes.Get().(*envelope)
	defer func() {
		if cap(e.head)+cap(e.tail) <= envelopeBytesMax {
			s.envelopes.Put(e)
		}
	}()
	// Responses to other requests may share the same bytes.
	if err := s.HoldAnswer(w, r, &d.text[0], int64(len(d.text))+d.beside); err != nil {
		return err
	}
	e.fill(d)
	head, text, tail := e.head, d.text, e.tail
	header := w.Header()
	header["Content-Type"] = web.HeaderJSON
	if len(text) >= web.CompressBytesMin && web.AcceptsGzip(r) {
		compressed, err := s.deflatedText(r.Context(), d.key, text)
		if err != nil {
			return moorage.E("rest.answerDocument", d.location, moorage.KindInternal, err)
		}
		header["Content-Encoding"] = web.HeaderGzip
		head, tail = compressed.gzip(head, tail)
		text = compressed.blocks
	}
	values := []string{strconv.Itoa(len(head) + len(text) + len(tail)), d.tag} // the values of two headers
	header["Content-Length"] = values[:1:1]
	if d.tag != "" {
		// Not header.Set, which would spell it Etag: Java clients look for this spelling.
		header["ETag"] = values[1:]
	}
	w.WriteHeader(http.StatusOK)
	for _, part := range [...][]byte{head, text, tail} {
		if _, err := w.Write(part); err != nil {
			return nil // the client disconnected
		}
	}
	return nil
}

// encodeConfig returns config as JSON, with sorted keys.
func encodeConfig(config map[string]string) ([]byte, error) {
	if len(config) == 0 {
		return []byte("{}"), nil
	}
	encoded, err := json.Marshal(config)
	return encoded, moorage.E("rest.encodeConfig", "", moorage.KindInternal, err)
}

// loadTag returns the ETag of a load. The ETag depends on everything that makes responses differ,
// except their content coding. It is the same on every node and after a restart. The response to a
// create, register or commit has the ETag of a plain load of the new version. The location alone
// does not identify a version, because the owner of a registered file may rewrite the file without
// changing its timestamp.
func loadTag(r *http.Request, table *catalog.Table, config []byte, credential string, form answerForm) string {
	text := make([]byte, 0, 512)
	text = append(text, table.MetadataLocation...)
	text = append(text, 0)
	text = append(text, table.Document.UUID()...)
	text = append(text, 0)
	text = strconv.AppendInt(text, table.Document.LastUpdatedMS(), 10)
	if !table.Registration.IsZero() {
		text = append(text, table.Registration.String()...)
	}
	text = append(text, 0)
	if form.refs {
		text = append(text, "refs"...)
	}
	text = append(text, 0)
	for _, value := range r.Header["X-Iceberg-Access-Delegation"] {
		text = append(text, value...)
		text = append(text, ',')
	}
	text = append(text, 0)
	if !table.Labels.Version.IsZero() {
		text = append(text, table.Labels.Version.String()...)
	}
	text = append(text, 0)
	text = append(text, config...)
	text = append(text, credential...) // the ETag changes when the server returns a new credential
	sum := sha256.Sum256(text)
	tag := make([]byte, 0, 24)
	tag = append(tag, '"')
	tag = base64.RawURLEncoding.AppendEncode(tag, sum[:16])
	return string(append(tag, '"'))
}

// matchesAny reports whether one of the ETags in the lines of an If-None-Match header equals tag in
// a weak comparison. An ETag without quotes counts too, because some clients strip them. Source:
// RFC 9110, 13.1.2.
func matchesAny(lines []string, tag string) bool {
	for _, line := range lines {
		for line != "" {
			var candidate string
			candidate, line, _ = strings.Cut(line, ",") // Moorage's own ETags contain no comma
			candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
			if candidate == "*" || candidate == tag || candidate == tag[1:len(tag)-1] {
				return true
			}
		}
	}
	return false
}
