package fakecloud

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// forbiddenObject is the gate's answer to a request that a token does not allow.
const forbiddenObject = "The caller does not have access to the Google Cloud Storage object."

// permissions returns the permissions of a role in a boundary. Source: documentation of Google
// Cloud Storage, "IAM roles".
func permissions(role string) []string {
	read := []string{"storage.objects.get", "storage.objects.list"}
	switch role {
	case "inRole:roles/storage.objectViewer":
		return read
	case "inRole:roles/storage.objectUser":
		return append(read, "storage.objects.create", "storage.objects.delete", "storage.objects.update")
	}
	return nil
}

// gate is a compiled rule of a boundary.
type gate struct {
	bucket      string
	permissions []string
	condition   cel.Program // nil if the rule has no condition
}

// need is a permission that a request needs.
type need struct {
	permission, bucket, object string
	prefix                     string // of a listing
}

// language declares the names that conditions can use: the resource, and the attributes of the
// request.
func language() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("resource", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("api", cel.MapType(cel.StringType, cel.StringType)),
		cel.Function("getAttribute", cel.MemberOverload("attribute_or_default",
			[]*cel.Type{cel.MapType(cel.StringType, cel.StringType), cel.StringType, cel.StringType}, cel.StringType,
			cel.FunctionBinding(func(arguments ...ref.Val) ref.Val {
				attributes, ok := arguments[0].Value().(map[string]string)
				if !ok {
					return types.NewErr("the attributes of a request are texts")
				}
				if value, ok := attributes[string(arguments[1].(types.String))]; ok {
					return types.String(value)
				}
				return arguments[2]
			}))),
	)
}

// gatesOf compiles a boundary with at least one rule, within Google's limits.
func gatesOf(rules []GoogleRule) ([]gate, error) {
	if len(rules) == 0 || len(rules) > 10 {
		return nil, errors.New("a boundary has 1 to 10 rules")
	}
	env, err := language()
	if err != nil {
		return nil, err
	}
	gates := make([]gate, len(rules))
	for i, rule := range rules {
		bucket, ok := strings.CutPrefix(rule.Resource, "//storage.googleapis.com/projects/_/buckets/")
		if !ok || bucket == "" || strings.ContainsAny(bucket, "/?*") {
			return nil, fmt.Errorf("invalid resource %q", rule.Resource)
		}
		gates[i].bucket = bucket
		for _, role := range rule.Permissions {
			gates[i].permissions = append(gates[i].permissions, permissions(role)...)
		}
		if rule.Condition == nil {
			continue
		}
		if len([]rune(rule.Condition.Expression)) > 2048 {
			return nil, errors.New("the condition is too long")
		}
		tree, issues := env.Compile(rule.Condition.Expression)
		if issues.Err() != nil {
			return nil, fmt.Errorf("invalid condition: %w", issues.Err())
		}
		if gates[i].condition, err = env.Program(tree); err != nil {
			return nil, err
		}
	}
	return gates, nil
}

// allows reports whether a rule grants the permission that a request needs.
func (g gate) allows(n need) bool {
	if g.bucket != n.bucket || !slices.Contains(g.permissions, n.permission) {
		return false
	}
	if g.condition == nil {
		return true
	}
	name := "projects/_/buckets/" + n.bucket
	attributes := map[string]string{}
	if n.object != "" {
		name += "/objects/" + n.object
	} else {
		attributes["storage.googleapis.com/objectListPrefix"] = n.prefix
	}
	value, _, err := g.condition.Eval(map[string]any{
		"resource": map[string]string{"name": name, "service": "storage.googleapis.com"}, "api": attributes,
	})
	return err == nil && value == types.True
}

// allows reports whether a token grants everything that a request needs.
func (g *grant) allows(needs []need) bool {
	if g.gates == nil {
		return true
	}
	for _, n := range needs {
		if !slices.ContainsFunc(g.gates, func(each gate) bool { return each.allows(n) }) {
			return false
		}
	}
	return len(needs) > 0
}

// pass forwards a request to the server if its token allows it.
func (c *GoogleCloud) pass(w http.ResponseWriter, r *http.Request) {
	holder := c.bearer(r)
	if holder == nil {
		refuse(w, http.StatusUnauthorized, "Anonymous caller does not have storage access.")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.URL.Path == "/batch/storage/v1" {
		c.passBatch(w, r, holder, body)
		return
	}
	if !holder.allows(needsOf(r, body)) {
		refuse(w, http.StatusForbidden, forbiddenObject)
		return
	}
	c.proxy.ServeHTTP(w, r)
}

// passBatch checks and forwards each call of a batch as a separate request.
func (c *GoogleCloud) passBatch(w http.ResponseWriter, r *http.Request, holder *grant, body []byte) {
	_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		refuse(w, http.StatusBadRequest, "not a batch")
		return
	}
	var answered bytes.Buffer
	parts := multipart.NewReader(bytes.NewReader(body), parameters["boundary"])
	answers := multipart.NewWriter(&answered)
	for {
		part, err := parts.NextPart()
		if err != nil {
			break
		}
		call, err := http.ReadRequest(bufio.NewReader(part))
		if err != nil {
			refuse(w, http.StatusBadRequest, "not a call")
			return
		}
		recorder := httptest.NewRecorder()
		if holder.allows(needsOf(call, nil)) {
			c.proxy.ServeHTTP(recorder, call.WithContext(r.Context()))
		} else {
			refuse(recorder, http.StatusForbidden, forbiddenObject)
		}
		into, err := answers.CreatePart(textproto.MIMEHeader{
			"Content-Type": {"application/http"},
			"Content-ID":   {strings.Replace(part.Header.Get("Content-ID"), "<", "<response-", 1)},
		})
		if err == nil {
			err = recorder.Result().Write(into)
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	_ = answers.Close()
	w.Header().Set("Content-Type", "multipart/mixed; boundary="+answers.Boundary())
	_, _ = w.Write(answered.Bytes()) // the client may have disconnected
}

// needsOf returns the permissions that a request needs. It returns no permissions for an unknown
// request; the gate then refuses it.
func needsOf(r *http.Request, body []byte) []need {
	upload := false
	path := r.URL.EscapedPath()
	for _, prefix := range []string{"/download", "/upload"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			path, upload = rest, prefix == "/upload"
		}
	}
	rest, ok := strings.CutPrefix(path, "/storage/v1/b/")
	bucket, rest, found := strings.Cut(rest, "/o")
	if !ok || !found {
		return nil
	}
	query := r.URL.Query()
	if rest == "" {
		if upload {
			return uploadNeeds(bucket, uploadName(r, query, body), query)
		}
		if r.Method == http.MethodGet {
			return []need{{permission: "storage.objects.list", bucket: bucket, prefix: query.Get("prefix")}}
		}
		return nil
	}
	object, err := url.PathUnescape(strings.TrimPrefix(rest, "/"))
	// A slash in the path that is not percent-encoded begins another part, such as the target of a
	// copy.
	if err != nil || object == "" || strings.Contains(rest[1:], "/") {
		return nil
	}
	permission := map[string]string{
		http.MethodGet: "storage.objects.get", http.MethodHead: "storage.objects.get",
		http.MethodDelete: "storage.objects.delete", http.MethodPatch: "storage.objects.update",
	}[r.Method]
	return []need{{permission: permission, bucket: bucket, object: object}}
}

// uploadNeeds returns the permissions that a write needs. A write that may replace an object also
// needs the permission to delete it.
func uploadNeeds(bucket, object string, query url.Values) []need {
	if object == "" {
		return nil
	}
	needs := []need{{permission: "storage.objects.create", bucket: bucket, object: object}}
	if query.Get("ifGenerationMatch") != "0" {
		needs = append(needs, need{permission: "storage.objects.delete", bucket: bucket, object: object})
	}
	return needs
}

// uploadName returns the name of the object that a request writes.
func uploadName(r *http.Request, query url.Values, body []byte) string {
	if name := query.Get("name"); name != "" {
		return name
	}
	text := body
	_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && parameters["boundary"] != "" {
		first, err := multipart.NewReader(bytes.NewReader(body), parameters["boundary"]).NextPart()
		if err != nil {
			return ""
		}
		if text, err = io.ReadAll(first); err != nil {
			return ""
		}
	}
	var metadata struct{ Name string }
	if json.Unmarshal(text, &metadata) != nil {
		return ""
	}
	return metadata.Name
}

// claims are the claims of an assertion.
type claims struct {
	Issuer string `json:"iss"`
	Scope  string `json:"scope"`
}

// verify returns the claims of an assertion, which must be signed with RS256 and the given key.
func verify(assertion string, by *rsa.PublicKey) (found claims, err error) {
	signed, signature, ok := cutLast(assertion, ".")
	_, payload, two := strings.Cut(signed, ".")
	if !ok || !two {
		return claims{}, errors.New("not a JWT")
	}
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		return claims{}, err
	}
	sum := sha256.Sum256([]byte(signed))
	if err := rsa.VerifyPKCS1v15(by, crypto.SHA256, sum[:], raw); err != nil {
		return claims{}, err
	}
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return claims{}, err
	}
	return found, json.Unmarshal(text, &found)
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}
