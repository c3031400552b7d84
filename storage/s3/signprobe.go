package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"moorage/storage"
	"moorage/storage/cloud"
)

// answerBytesMax is the maximum number of bytes that are read from an answer to a probe's request.
const answerBytesMax = 64 << 10

// signProbe tries signed requests in one bucket. Its methods do nothing after the first failure.
type signProbe struct {
	store    *Store
	bucket   string
	inside   string // key of the folder that represents the table, without a slash at the end
	beside   string // key of a folder with a similar name
	sent     int
	withheld map[string]string
	uploads  []types.MultipartUpload // uploads to abort, except ended
	ended    string                  // id of the upload that has ended
	part     string                  // ETag of that upload's part
	// done is true if the probe can end early, because no call can be signed.
	done bool
	err  error
}

// signedCall is a request in its signed form.
type signedCall struct {
	call, method, key, query string
	headers                  map[string]string
	body                     string
}

// tampering is a change of a signed request.
type tampering struct {
	// what completes the sentence "… is not signed, because the storage lets through …".
	what   string
	change func(r *http.Request)
	// all is true if all calls have the changed part. If the server then accepts the change, no
	// call can be signed.
	all bool
	// answered is true if only a successful answer shows that the server accepted the change. If it
	// is false, any answer except a refusal shows that.
	answered bool
}

// run sends about 36 requests. The folder called inside represents a table. The folder called
// beside represents a table of another principal.
func (p *signProbe) run(ctx context.Context) (*signFindings, error) {
	beside, file, parts := p.beside+cloud.ProbeData, p.inside+cloud.ProbeData, p.inside+"/parts"
	defer func() {
		left := []string{beside, file, parts}
		if len(p.withheld) > 0 { // a server that looks for the bucket in the host's name returned this error
			left = append(left, p.bucket+"/"+file)
		}
		p.clean(ctx, left...)
	}()
	if err := (engine{p.store.client.sdk, p.bucket}).Write(ctx, beside); err != nil {
		return nil, fmt.Errorf("write %s with the server's own key: %w", beside, err)
	}
	p.sent++
	path := tampering{what: "another path", change: p.moveTo(beside), all: true}
	p.tryWrite(ctx, file, beside, path)
	p.try(ctx, signedCall{call: callGet, method: http.MethodGet, key: file}, path, anotherMethod(http.MethodDelete))
	p.try(ctx, signedCall{call: callHead, method: http.MethodHead, key: file}, path)
	p.try(ctx, signedCall{call: callList, method: http.MethodGet, query: listing(p.inside)}, tampering{
		what: "another query", all: true, change: func(r *http.Request) { r.URL.RawQuery = listing(p.beside) },
	})
	p.tryUpload(ctx, parts, beside, path)
	p.try(ctx, signedCall{call: callDeleteMany, method: http.MethodPost, query: "delete=", body: deletion(file)},
		tampering{what: "another body", change: func(r *http.Request) { setBody(r, deletion(beside)) }})
	p.try(ctx, signedCall{call: callDelete, method: http.MethodDelete, key: file}, path)
	if p.err != nil {
		return nil, fmt.Errorf("s3: find out whether a signed request can be changed: %w", p.err)
	}
	return &signFindings{at: p.store.client.now(), withheld: p.withheld}, nil
}

// tryWrite tries the write of a file.
func (p *signProbe) tryWrite(ctx context.Context, file, beside string, path tampering) {
	until := p.store.client.now().Add(time.Minute).UTC().Format(time.RFC3339)
	p.try(ctx, signedCall{
		call: callPut, method: http.MethodPut, key: file, body: "probe",
		headers: map[string]string{"X-Amz-Meta-Probe": "a"},
	},
		anotherMethod(http.MethodDelete), path, anotherQuery(), p.anotherHost(), p.copying(beside), listedForAll(),
		adding("a header X-Amz-Tagging that was added", "X-Amz-Tagging", "a=b"),
		adding("headers X-Amz-Object-Lock-* that were added", "X-Amz-Object-Lock-Mode", "GOVERNANCE",
			"X-Amz-Object-Lock-Retain-Until-Date", until),
		adding("a header X-Amz-Meta-* that was added", "X-Amz-Meta-Other", "a"),
		adding("a header X-Amz-Meta-* that was changed", "X-Amz-Meta-Probe", "b"),
		tampering{what: "requests without a signature", all: true,
			change: func(r *http.Request) { r.Header.Del("Authorization") }})
}

// tryUpload tries the multipart upload of a file.
func (p *signProbe) tryUpload(ctx context.Context, parts, beside string, path tampering) {
	upload := p.try(ctx, signedCall{
		call: callCreateUpload, method: http.MethodPost, key: parts, query: "uploads=",
	}, anotherQuery(), listedForAll())
	if upload == "" {
		return
	}
	id := "uploadId=" + url.QueryEscape(upload)
	p.try(ctx, signedCall{
		call: callUploadPart, method: http.MethodPut, key: parts, query: "partNumber=1&" + id, body: "probe",
	}, path, p.copying(beside))
	p.try(ctx, signedCall{call: callListParts, method: http.MethodGet, key: parts, query: id}, path)
	p.try(ctx, signedCall{
		call: callCompleteUpload, method: http.MethodPost, key: parts, query: id,
		body: "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>" + escapeText(p.part) +
			"</ETag></Part></CompleteMultipartUpload>",
	}, path)
	p.try(ctx, signedCall{call: callAbortUpload, method: http.MethodDelete, key: parts, query: id}, path)
}

func anotherMethod(to string) tampering {
	return tampering{what: "another method", change: func(r *http.Request) { r.Method = to }, all: true}
}

func anotherQuery() tampering {
	return tampering{what: "another query", all: true, change: func(r *http.Request) {
		r.URL.RawQuery = strings.TrimPrefix(r.URL.RawQuery+"&"+xIDParameter+"=probe", "&")
	}}
}

// adding adds or changes headers. headers alternates names and values.
func adding(what string, headers ...string) tampering {
	return tampering{what: what, change: func(r *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
	}}
}

// copying makes a write copy another object.
func (p *signProbe) copying(from string) tampering {
	return adding("a header X-Amz-Copy-Source that was added", "X-Amz-Copy-Source", "/"+p.bucket+"/"+escapePath(from))
}

// listedForAll adds a header to a write that would make the object public.
func listedForAll() tampering {
	return adding("a header X-Amz-Acl that was added", "X-Amz-Acl", "public-read")
}

// try sends a request as it was signed, and then once with each change. A call is withheld if the
// server refuses it unchanged, or accepts it with a change. try returns the id of the upload that
// the request began, if any.
func (p *signProbe) try(ctx context.Context, call signedCall, changes ...tampering) (upload string) {
	if p.done {
		return ""
	}
	status, upload := p.send(ctx, call, nil)
	done := status > 0 && status < http.StatusMultipleChoices
	if done && (call.call == callCompleteUpload || call.call == callAbortUpload) && len(p.uploads) > 0 {
		p.ended = aws.ToString(p.uploads[0].UploadId)
	}
	// The upload has ended, so aborting it cannot succeed. Only a server that accepted the
	// signature answers 404.
	done = done || call.call == callAbortUpload && status == http.StatusNotFound
	if p.err != nil || !done {
		if call.call == callGet || call.call == callHead || call.call == callPut {
			p.err = errors.Join(p.err, fmt.Errorf("a signed %s of %s was answered with %d", call.call, call.key,
				status))
		}
		p.withheld[call.call] = fmt.Sprintf("is not signed: the storage answered %d to it", status)
		return ""
	}
	for _, each := range changes {
		status, _ := p.send(ctx, call, each.change)
		if p.err != nil {
			return ""
		}
		refused := status == http.StatusBadRequest || status == http.StatusUnauthorized ||
			status == http.StatusForbidden
		if refused || each.answered && status >= http.StatusMultipleChoices {
			continue
		}
		why := "is not signed, because the storage lets through " + each.what
		p.withheld[call.call] = why
		if each.all {
			for _, every := range calls() {
				p.withheld[every.name] = why
			}
			p.done = true
			return ""
		}
	}
	return upload
}

// send sends a request, which change modifies after it was signed, and returns the status of the
// answer.
func (p *signProbe) send(ctx context.Context, call signedCall, change func(r *http.Request)) (int, string) {
	if p.err == nil && p.sent >= signProbeRequestsMax {
		p.err = errors.New("the probe of the storage needs too many requests")
	}
	if p.err != nil {
		return 0, ""
	}
	status, upload, err := p.sendOnce(ctx, call, change)
	if err == nil && status >= http.StatusInternalServerError && status != http.StatusNotImplemented {
		status, upload, err = p.sendOnce(ctx, call, change)
		if err == nil && status >= http.StatusInternalServerError && status != http.StatusNotImplemented {
			err = fmt.Errorf("%w: the storage answered %d", storage.ErrUnavailable, status)
		}
	}
	p.err = err
	return status, upload
}

func (p *signProbe) sendOnce(ctx context.Context, call signedCall, change func(r *http.Request)) (
	status int, upload string, err error) {
	client := p.store.client
	p.sent++
	target, err := client.addressOf(p.bucket, call.key)
	if err != nil {
		return 0, "", err
	}
	target.RawQuery = call.query
	table := storage.Location{Scheme: storage.SchemeS3, Authority: p.bucket, Path: "/" + p.inside}
	asked := storage.SignRequest{
		Method: call.method, URI: target.String(), Region: client.region(), Headers: make(map[string][]string),
		Locations: []string{table.String()}, Write: true,
	}
	if call.call == callDeleteMany {
		asked.Body = []byte(call.body)
	}
	request, err := http.NewRequestWithContext(ctx, call.method, target.String(), nil)
	if err != nil {
		return 0, "", err
	}
	for name, value := range call.headers {
		asked.Headers[name] = []string{value}
		request.Header.Set(name, value)
	}
	if call.body != "" {
		setBody(request, call.body)
	}
	signature, err := p.store.sign(ctx, asked)
	if err != nil {
		return 0, "", err
	}
	for name, values := range signature.Headers {
		request.Header[name] = values
	}
	request.URL.RawPath = escapePath(target.Path)
	if change != nil {
		change(request)
	}
	answer, err := client.sdk.Options().HTTPClient.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax))
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return 0, "", fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	}
	if call.call == callUploadPart && p.part == "" {
		p.part = answer.Header.Get("ETag")
	}
	if call.call == callCreateUpload && answer.StatusCode == http.StatusOK {
		upload = p.noteUpload(body)
	}
	return answer.StatusCode, upload, nil
}

// noteUpload returns the id of a new upload, and remembers the upload for clean.
func (p *signProbe) noteUpload(body []byte) string {
	var begun struct{ Key, UploadId string }
	if xml.Unmarshal(body, &begun) != nil || begun.UploadId == "" {
		return ""
	}
	p.uploads = append(p.uploads, types.MultipartUpload{Key: &begun.Key, UploadId: &begun.UploadId})
	return begun.UploadId
}

// moveTo returns a change that replaces the path with the path of another object, or of the bucket.
func (p *signProbe) moveTo(key string) func(*http.Request) {
	return func(r *http.Request) {
		if target, err := p.store.client.addressOf(p.bucket, key); err == nil {
			r.URL.Path, r.URL.RawPath = target.Path, escapePath(target.Path)
		}
	}
}

// anotherHost moves the bucket from the path to the host, or from the host to the path. A proxy may
// not know such a host, so only success shows that the server accepted the change.
func (p *signProbe) anotherHost() tampering {
	return tampering{what: "another host", all: true, answered: true, change: func(r *http.Request) {
		if p.store.client.isInPath(p.bucket) {
			r.Host = p.bucket + "." + r.URL.Host
		} else {
			r.Host = strings.TrimPrefix(r.URL.Host, p.bucket+".")
		}
	}}
}

// clean removes the objects that a probe may have left. It logs objects that it cannot remove. They
// are small, and their names begin with cloud.ProbePrefix.
func (p *signProbe) clean(ctx context.Context, keys ...string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cloud.ProbeEndTimeout)
	defer cancel()
	failures := p.store.client.deleteObjects(ctx, p.bucket, identifiers(keys))
	for _, each := range p.uploads {
		if aws.ToString(each.UploadId) == p.ended {
			continue
		}
		_, err := p.store.client.sdk.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket: &p.bucket, Key: each.Key, UploadId: each.UploadId,
		})
		if err != nil && statusOf(err) != http.StatusNotFound {
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 {
		p.store.client.log.WarnContext(ctx, "could not delete what a probe of signing wrote: delete it yourself",
			"bucket", p.bucket, "prefix", p.inside, "error", errors.Join(failures...))
	}
}

// addressOf returns the address of an object, or of the bucket if key is empty.
func (c *Client) addressOf(bucket, key string) (*url.URL, error) {
	endpoints := c.endpoints()
	if len(endpoints) == 0 {
		return nil, errors.New("s3: requests to a server behind a path are not signed")
	}
	target := endpoints[0]
	if c.isInPath(bucket) {
		target.Path = "/" + strings.TrimSuffix(bucket+"/"+key, "/")
	} else {
		target.Path = "/" + key
		target.Host = bucket + "." + target.Host
	}
	return &target, nil
}

// listing is the query of a list of a folder.
func listing(folder string) string { return "list-type=2&prefix=" + url.QueryEscape(folder+"/") }

// deletion is the body of a bulk delete of one object.
func deletion(key string) string {
	return "<Delete><Object><Key>" + escapeText(key) + "</Key></Object></Delete>"
}

func escapeText(text string) string {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(text)) // a Builder does not fail
	return escaped.String()
}

func setBody(r *http.Request, body string) {
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
}
