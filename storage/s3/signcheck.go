package s3

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"moorage/storage"
)

// Values of X-Amz-Content-Sha256 that are not the hash of the content.
const (
	unsignedPayload         = "UNSIGNED-PAYLOAD"
	unsignedPayloadTrailers = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
)

// appendMD5 is the value of X-Amz-Te that some Java clients send. It requests a checksum after the
// content of an answer. No other value of that header is accepted.
const appendMD5 = "append-md5"

// xIDParameter names the operation of the SDK that sends a request. The server ignores it.
const xIDParameter = "x-id"

// The operations that may be signed, under their names in the protocol.
const (
	callGet            = "GetObject"
	callHead           = "HeadObject"
	callList           = "ListObjectsV2"
	callPut            = "PutObject"
	callDelete         = "DeleteObject"
	callDeleteMany     = "DeleteObjects"
	callCreateUpload   = "CreateMultipartUpload"
	callUploadPart     = "UploadPart"
	callListParts      = "ListParts"
	callCompleteUpload = "CompleteMultipartUpload"
	callAbortUpload    = "AbortMultipartUpload"
)

// signable is a kind of request that may be signed. Other kinds may not.
type signable struct {
	name   string // of the protocol's operation
	method string
	// onBucket is true if the request names only a bucket, not an object.
	onBucket bool
	// needs lists the required parameters of the request, and may lists the optional ones.
	needs, may []string
	// values holds the required values of parameters.
	values map[string]string
	write  bool
	// check checks the objects in the parameters or the body. It is nil if requests of this kind
	// name no objects there.
	check func(r *signing) error
}

// calls returns all kinds of requests that may be signed.
func calls() []signable {
	empty := func(name string) map[string]string { return map[string]string{name: ""} }
	const (
		get, head, put = http.MethodGet, http.MethodHead, http.MethodPut
		post, del      = http.MethodPost, http.MethodDelete
	)
	return []signable{
		{name: callGet, method: get, may: []string{"partNumber"}},
		{name: callHead, method: head, may: []string{"partNumber"}},
		{name: callListParts, method: get, needs: []string{"uploadId"},
			may: []string{"max-parts", "part-number-marker"}},
		{name: callList, method: get, onBucket: true, needs: []string{"list-type", "prefix"},
			may: []string{"delimiter", "continuation-token", "start-after", "max-keys", "encoding-type",
				"fetch-owner"},
			values: map[string]string{"list-type": "2"}, check: (*signing).checkPrefix},
		{name: callPut, method: put, write: true},
		{name: callCreateUpload, method: post, write: true, needs: []string{"uploads"},
			values: empty("uploads")},
		{name: callUploadPart, method: put, write: true, needs: []string{"partNumber", "uploadId"}},
		{name: callCompleteUpload, method: post, write: true, needs: []string{"uploadId"}},
		{name: callAbortUpload, method: del, write: true, needs: []string{"uploadId"}},
		{name: callDelete, method: del, write: true},
		{name: callDeleteMany, method: post, onBucket: true, write: true, needs: []string{"delete"},
			values: empty("delete"), check: (*signing).checkBody},
	}
}

// takes reports whether a request with these parameters is of kind c.
func (c signable) takes(parameters map[string]string) bool {
	for _, name := range c.needs {
		value, ok := parameters[name]
		if want, fixed := c.values[name]; !ok || fixed && value != want {
			return false
		}
	}
	for name := range parameters {
		if name != xIDParameter && !slices.Contains(c.needs, name) && !slices.Contains(c.may, name) {
			return false
		}
	}
	return true
}

// signing is a request that is being checked.
type signing struct {
	request    storage.SignRequest
	client     *Client
	locations  []storage.Location
	url        *url.URL
	bucket     string
	key        string // empty for the bucket itself
	parameters map[string]string
	payload    string
}

// checkRequest returns the part of a request that may be signed. It returns the error of the first
// check that fails.
func (c *Client) checkRequest(request storage.SignRequest, locations []storage.Location) (checkedRequest, error) {
	r := &signing{request: request, client: c, locations: locations}
	if request.Region != c.region() {
		return checkedRequest{}, fmt.Errorf("%w: the region is %s, not %q", storage.ErrMalformedRequest, c.region(),
			request.Region)
	}
	for _, step := range []func() error{r.readURL, r.readPath, r.readQuery} {
		if err := step(); err != nil {
			return checkedRequest{}, err
		}
	}
	headers, date, err := r.readHeaders()
	if err != nil {
		return checkedRequest{}, err
	}
	found, err := r.findCall()
	if err != nil {
		return checkedRequest{}, err
	}
	if !found.onBucket {
		if err := r.checkKey(r.key, found.write); err != nil {
			return checkedRequest{}, err
		}
	}
	if found.check != nil {
		if err := found.check(r); err != nil {
			return checkedRequest{}, err
		}
	}
	if found.write && !request.Write {
		return checkedRequest{}, storage.ErrNeedsWrite
	}
	return checkedRequest{
		call: found.name, method: request.Method, url: r.url, headers: headers, payload: r.payload, date: date,
	}, nil
}

func notSigned(format string, values ...any) error {
	return fmt.Errorf("%w: %s", storage.ErrNotSigned, fmt.Sprintf(format, values...))
}

// readURL parses the URL, which must belong to this server.
func (r *signing) readURL() error {
	parsed, err := url.Parse(r.request.URI)
	if err != nil || !parsed.IsAbs() || parsed.Opaque != "" || parsed.Host == "" || !utf8.ValidString(r.request.URI) {
		return fmt.Errorf("%w: the URI is not the address of an object", storage.ErrMalformedRequest)
	}
	if parsed.User != nil || parsed.Fragment != "" || strings.Contains(r.request.URI, "#") {
		return notSigned("the URI has a user or a fragment")
	}
	bucket, ok := r.client.servesAt(parsed)
	if !ok {
		return notSigned("%s://%s is not this storage", parsed.Scheme, parsed.Host)
	}
	r.url, r.bucket = parsed, bucket
	return nil
}

// servesAt reports whether an address belongs to the server. If the bucket is in the host's name,
// servesAt returns it. The bucket must be where this package's own requests have it, because a
// server that looks elsewhere would find a different bucket. For example, in
// http://lake.host/payroll/x, a server that looks in the path finds payroll. The host must also be
// spelled as in the endpoint.
func (c *Client) servesAt(address *url.URL) (bucket string, ok bool) {
	for _, endpoint := range c.endpoints() {
		if address.Scheme != endpoint.Scheme {
			continue
		}
		if address.Host == endpoint.Host { // then readPath expects the bucket at the start of the path
			return "", true
		}
		bucket, found := strings.CutSuffix(address.Host, "."+endpoint.Host)
		if found && bucket != "" && !c.isInPath(bucket) {
			return bucket, true
		}
	}
	return "", false
}

// isInPath reports whether addresses of a bucket have its name in the path. A name with dots is in
// the path, because a server's certificate does not cover a host with that name.
func (c *Client) isInPath(bucket string) bool {
	return c.sdk.Options().UsePathStyle || strings.Contains(bucket, ".")
}

// endpoints returns the addresses of the server.
func (c *Client) endpoints() []url.URL {
	if base := c.sdk.Options().BaseEndpoint; base != nil {
		if parsed, err := url.Parse(*base); err == nil && strings.Trim(parsed.Path, "/") == "" {
			return []url.URL{*parsed}
		}
		return nil // if the endpoint has a path, it is unclear which object a request names
	}
	region, domain := c.region(), "amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain += ".cn"
	}
	hosts := []string{"s3." + region + "." + domain, "s3.dualstack." + region + "." + domain}
	if region == fallbackRegion {
		hosts = append(hosts, "s3."+domain)
	}
	endpoints := make([]url.URL, 0, len(hosts))
	for _, host := range hosts {
		endpoints = append(endpoints, url.URL{Scheme: "https", Host: host})
	}
	return endpoints
}

// readPath parses the bucket and the key. It refuses a path that readers could decode to different
// names.
func (r *signing) readPath() error {
	raw := r.url.EscapedPath()
	path := r.url.Path
	if strings.Contains(raw, "+") {
		return notSigned("a plus sign in the path must be spelled %%2B: some servers read it as a space")
	}
	if strings.Count(raw, "/") != strings.Count(path, "/") {
		return notSigned("the path has a slash that is escaped")
	}
	if !strings.HasPrefix(path, "/") && path != "" {
		return fmt.Errorf("%w: the path is not absolute", storage.ErrMalformedRequest)
	}
	key := strings.TrimPrefix(path, "/")
	if r.bucket == "" {
		r.bucket, key, _ = strings.Cut(key, "/")
		if r.bucket != "" && !r.client.isInPath(r.bucket) {
			return notSigned("the bucket is named in the path, and the server reads it in the host's name")
		}
	}
	if r.bucket == "" {
		return notSigned("the request names no bucket")
	}
	r.key = key
	// The server will escape the path in the same way when it checks the signature.
	r.url.Opaque = "//" + r.url.Host + escapePath(path)
	return nil
}

// readQuery parses the parameters. Each must occur only once.
func (r *signing) readQuery() error {
	r.parameters = make(map[string]string)
	if strings.Contains(r.url.RawQuery, ";") {
		return notSigned("a semicolon in the query must be escaped")
	}
	// Here, a plus sign is decoded as a space, and signed as one. A server that reads it
	// differently refuses the request.
	values, err := url.ParseQuery(r.url.RawQuery)
	if err != nil {
		return fmt.Errorf("%w: the query cannot be read", storage.ErrMalformedRequest)
	}
	for name, each := range values {
		if text := name + strings.Join(each, ""); len(each) != 1 || !isText(text) {
			return notSigned("the parameter %q", name)
		}
		r.parameters[name] = each[0]
	}
	return nil
}

// findCall returns the kind of the request.
func (r *signing) findCall() (signable, error) {
	for _, each := range calls() {
		if each.method == r.request.Method && each.onBucket == (r.key == "") && each.takes(r.parameters) {
			return each, nil
		}
	}
	return signable{}, notSigned("%s with this path and query is not one of the requests that are", r.request.Method)
}

// checkKey returns an error if the object is not within the table, or if write is true and the
// object must not be written.
func (r *signing) checkKey(key string, write bool) error {
	if err := checkSegments(key); err != nil {
		return err
	}
	if r.client.vending.Dialect != DialectAWS && strings.Contains("/"+key, "//") {
		return notSigned("the key has two slashes in a row, which the server may read as one")
	}
	named := storage.Location{Scheme: storage.SchemeS3, Authority: r.bucket, Path: "/" + key}
	for _, location := range r.locations {
		if !location.Contains(named) {
			continue
		}
		if write && !r.client.vending.OpenMetadata && strings.HasSuffix(key, storage.MetadataEnding) {
			return notSigned("metadata files belong to the catalog")
		}
		return nil
	}
	return notSigned("s3://%s/%s is not within the table", r.bucket, key)
}

// isText reports whether a name is text without control characters.
func isText(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// checkSegments returns an error if some server may take a key for another key.
func checkSegments(key string) error {
	if !isText(key) {
		return notSigned("the key has characters that are not text")
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "." || segment == ".." {
			return notSigned(`the key has "." or ".."`)
		}
	}
	return nil
}

// checkPrefix returns an error if a listing goes beyond the table. The prefix must begin with the
// table's location and a slash.
func (r *signing) checkPrefix() error {
	prefix := r.parameters["prefix"]
	if err := checkSegments(prefix); err != nil {
		return err
	}
	for _, location := range r.locations {
		if location.Authority != r.bucket {
			continue
		}
		folder := strings.TrimSuffix(location.Path[1:], "/") + "/"
		if folder == "/" || strings.HasPrefix(prefix, folder) {
			return nil
		}
	}
	return notSigned("the list of s3://%s/%s is not within the table", r.bucket, prefix)
}

// checkBody returns an error if a bulk delete names objects that are not within the table.
func (r *signing) checkBody() error {
	if r.request.Body == nil {
		return notSigned("a bulk delete is signed with its body only")
	}
	keys, err := readDelete(r.request.Body)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := r.checkKey(key, true); err != nil {
			return err
		}
	}
	sum := sha256.Sum256(r.request.Body)
	hash := hex.EncodeToString(sum[:])
	if r.payload != unsignedPayload && r.payload != hash {
		return notSigned("the hash in X-Amz-Content-Sha256 is not that of the body")
	}
	r.payload = hash
	return nil
}

var hashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// readHeaders returns the signed headers, and X-Amz-Date as sent. It refuses unknown headers,
// because they may be harmful.
func (r *signing) readHeaders() (signed http.Header, date string, err error) {
	signed = make(http.Header)
	r.payload = unsignedPayload
	seen := make(map[string]bool)
	for given, values := range r.request.Headers {
		name := strings.ToLower(given)
		if seen[name] || len(values) != 1 || strings.ContainsFunc(given+values[0], unicode.IsControl) {
			return nil, "", notSigned("the header %q", given)
		}
		seen[name] = true
		value := strings.TrimSpace(values[0])
		switch {
		case name == "x-amz-date":
			date = value
		case name == "x-amz-content-sha256":
			if value != unsignedPayload && value != unsignedPayloadTrailers && !hashPattern.MatchString(value) {
				return nil, "", notSigned("X-Amz-Content-Sha256 %q", value)
			}
			r.payload = value
		case name == "x-amz-te" && value != appendMD5:
			return nil, "", notSigned("the header X-Amz-Te %q", value)
		case isSignedHeader(name):
			signed.Set(name, value)
		case !isOpenHeader(name):
			return nil, "", notSigned("the header %q", given)
		}
	}
	return signed, date, nil
}

// isSignedHeader reports whether a header is signed.
func isSignedHeader(name string) bool {
	switch name {
	case "content-md5", "content-type", "content-encoding", "x-amz-sdk-checksum-algorithm", "x-amz-trailer",
		"x-amz-decoded-content-length", "x-amz-storage-class", "x-amz-te", "if-match", "if-none-match":
		return true
	}
	for _, prefix := range []string{"x-amz-checksum-", "x-amz-server-side-encryption", "x-amz-meta-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// isOpenHeader reports whether a header may be sent unsigned.
func isOpenHeader(name string) bool {
	switch name {
	case "host", "range", "user-agent", "connection", "expect", "content-length":
		return true
	}
	return strings.HasPrefix(name, "amz-sdk-") || strings.HasPrefix(name, "accept")
}

// escapePath escapes a path as in the signature: everything except unreserved characters and
// slashes.
func escapePath(path string) string {
	var escaped strings.Builder
	for i := range len(path) {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.~/", c) >= 0:
			escaped.WriteByte(c)
		default:
			fmt.Fprintf(&escaped, "%%%02X", c)
		}
	}
	return escaped.String()
}
