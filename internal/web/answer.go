package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"moorage"
)

// CompressBytesMin is the shortest body worth compressing: a shorter body fits into one packet.
const CompressBytesMin = 1200

// AnswerJSON answers 200 with value, compressed if the client requests that.
func (s *Server) AnswerJSON(w http.ResponseWriter, r *http.Request, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return moorage.E("web.AnswerJSON", "", moorage.KindInternal, err)
	}
	return s.AnswerText(w, r, body)
}

// AnswerText is like AnswerJSON, for a body that is already JSON. It does not keep body.
func (s *Server) AnswerText(w http.ResponseWriter, r *http.Request, body []byte) error {
	if err := s.HoldAnswer(w, r, nil, int64(len(body))); err != nil {
		return err
	}
	w.Header()["Content-Type"] = HeaderJSON
	return s.AnswerBody(w, r, http.StatusOK, body)
}

// AnswerBody answers status with body, compressed if the client requests that. The caller has set
// the other headers. It does not keep body.
func (s *Server) AnswerBody(w http.ResponseWriter, r *http.Request, status int, body []byte) (err error) {
	header := w.Header()
	header["Vary"] = HeaderVary
	if len(body) >= CompressBytesMin && AcceptsGzip(r) {
		if body, err = s.gzipped(body); err != nil {
			return moorage.E("web.AnswerBody", "", moorage.KindInternal, err)
		}
		header["Content-Encoding"] = HeaderGzip
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // if this fails, the client has disconnected
	}
	return nil
}

// AnswerNothing answers 204.
func AnswerNothing(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Values of Content-Type, Content-Encoding and Vary. All answers share these slices, which never
// change. Every answer that can be compressed has at least the Vary header in HeaderVary.
var (
	HeaderJSON = []string{"application/json"}
	HeaderGzip = []string{"gzip"}
	HeaderVary = []string{"Accept-Encoding"}
)

func newGzipWriter() any {
	writer, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return writer
}

func (s *Server) gzipped(body []byte) ([]byte, error) {
	writer := s.gzipWriters.Get().(*gzip.Writer)
	defer s.gzipWriters.Put(writer)
	var compressed bytes.Buffer
	compressed.Grow(len(body) / 4)
	writer.Reset(&compressed)
	if _, err := writer.Write(body); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return compressed.Bytes(), nil
}

// AcceptsGzip reports whether the client's Accept-Encoding weighs gzip at least as high as an
// uncompressed body. Without the header it returns false. Source: RFC 9110, 12.5.3.
func AcceptsGzip(r *http.Request) bool {
	gzipQ, identityQ, anyQ := -1, -1, -1
	for _, line := range r.Header["Accept-Encoding"] {
		for line != "" {
			var item string
			item, line, _ = strings.Cut(line, ",")
			coding, parameters, _ := strings.Cut(item, ";")
			q := quality(parameters)
			switch coding = strings.TrimSpace(coding); {
			case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
				gzipQ = q
			case strings.EqualFold(coding, "identity"):
				identityQ = q
			case coding == "*":
				anyQ = q
			}
		}
	}
	if gzipQ < 0 {
		gzipQ = anyQ
	}
	return gzipQ > 0 && gzipQ >= identityQ
}

// quality returns the weight in the parameters of an Accept-Encoding item, in thousandths. It
// returns 1000 if there is no weight, and 0 if the weight cannot be read.
func quality(parameters string) int {
	for parameters != "" {
		var parameter string
		parameter, parameters, _ = strings.Cut(parameters, ";")
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(q >= 0 && q <= 1) { // the negated condition also refuses NaN
			return 0
		}
		return int(q * 1000)
	}
	return 1000
}
