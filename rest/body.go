package rest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"moorage"
)

// bodyBytesFirst is how much memory is taken for a body before any of it has arrived, and without asking whether there
// is room: nearly all bodies are shorter.
const bodyBytesFirst = 1 << 20

// roomWait is how long a large body waits for room that others have taken: less than clients do for an answer.
const roomWait = 5 * time.Second

// readBody returns the whole body of r. One that is longer than allowed is KindTooLarge, a large one for which there
// is no room KindTooManyRequests.
func (s *server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, moorage.Errorf(moorage.KindBadRequest, "Content-Encoding %q is not supported for requests", encoding)
	}
	if r.ContentLength > s.config.BodyBytesMax {
		return nil, s.tooLarge(w)
	}
	if r.ContentLength > bodyBytesFirst {
		if err := s.takeRoom(w, r, r.ContentLength); err != nil {
			return nil, err
		}
	}
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), bodyBytesFirst)) + bytes.MinRead)
	n, err := io.Copy(&body, io.LimitReader(r.Body, min(s.config.BodyBytesMax, bodyBytesFirst)+1))
	if err == nil && n > bodyBytesFirst {
		if r.ContentLength < 0 { // nobody knows how much will come
			if err := s.takeRoom(w, r, s.config.BodyBytesMax); err != nil {
				return nil, err
			}
		}
		var more int64
		more, err = io.Copy(&body, io.LimitReader(r.Body, s.config.BodyBytesMax+1-n))
		n += more
	}
	switch {
	case err != nil:
		return nil, moorage.Errorf(moorage.KindBadRequest, "The request body ended early")
	case n > s.config.BodyBytesMax:
		return nil, s.tooLarge(w)
	}
	return body.Bytes(), nil
}

// takeRoom waits until there is room for so many bytes of a body, and takes it until the request is answered.
func (s *server) takeRoom(w http.ResponseWriter, r *http.Request, bytes int64) error {
	ctx, cancel := context.WithTimeout(r.Context(), roomWait)
	defer cancel()
	if s.bodies.Acquire(ctx, bytes) != nil {
		if err := r.Context().Err(); err != nil {
			return err
		}
		s.hangUp(w)
		return moorage.Errorf(moorage.KindTooManyRequests, "Too many large requests are being answered; nothing was changed")
	}
	w.(*exchange).room = bytes
	return nil
}

// hangUp lets the answer end the connection, and go out before the rest of the body has come in: net/http
// would wait for a part of it.
func (s *server) hangUp(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).EnableFullDuplex() // without it the client waits longer, no more
}

func (s *server) tooLarge(w http.ResponseWriter) error {
	s.hangUp(w)
	return moorage.Errorf(moorage.KindTooLarge, "The request body is longer than %d bytes", s.config.BodyBytesMax)
}
