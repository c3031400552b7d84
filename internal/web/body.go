package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"moorage"
)

// Memory for a body grows with what has arrived of it, whatever its header announces. It doubles,
// from bodyBytesFirst on.
const (
	// bodyBytesFirst holds the usual commit, and is little for a client that sends no more than a
	// header.
	bodyBytesFirst = 4 << 10
	// bodyBytesFree is the length up to which bodies ask for no room. Nearly all are shorter.
	bodyBytesFree = 64 << 10
)

// A body may take as long as an honest client needs. One that stands still or trickles only holds a
// connection.
const (
	// bodyPatience is how long a body may bring nothing at first. A client may have to wait for
	// its own disk or line.
	bodyPatience = 20 * time.Second
	// bodyRateLeast is how many bytes a second a body must have brought on average after that. A
	// line of 128 kbit/s has so many.
	bodyRateLeast = 16 << 10
	// bodyTimeMax is for the whole body; of a long one each part has to come in its part of the
	// time. The longest one of the default has to come at 220 KiB a second.
	bodyTimeMax = 5 * time.Minute
)

// roomWait is how long a large body waits for room that others have taken, all in all. Clients wait
// longer for an answer.
const roomWait = 5 * time.Second

// incoming is the body of a request while it arrives.
type incoming struct {
	exchange *exchange
	request  *http.Request
	wants    int64     // its length; if unknown, the most that it may have and one
	began    time.Time // moved by the time that it waited for room
	waited   time.Duration
	text     []byte
}

// HasLargeBody reports whether the body of r may be so long that it takes room.
func HasLargeBody(r *http.Request) bool {
	return r.ContentLength < 0 || r.ContentLength > bodyBytesFree
}

// strangers own the room for large bodies of all that MarkStranger marked. No caller is called so.
const strangers = " strangers"

// MarkStranger lets the body of a request share the part of one caller with the bodies of all
// others that are marked.
func MarkStranger(w http.ResponseWriter) {
	if x, ok := w.(*exchange); ok {
		x.isStranger = true
	}
}

// HangUp lets the answer of a request end its connection, and go out before the body has come in.
func (s *Server) HangUp(w http.ResponseWriter) { s.hangUp(w) }

// ReadBody returns the whole body of r. One that is longer than allowed is KindTooLarge, a large
// one for which there is no room KindTooManyRequests.
func (s *Server) ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, moorage.Errorf(moorage.KindBadRequest,
			"Content-Encoding %q is not supported for requests", encoding)
	}
	if r.ContentLength > s.config.BodyBytesMax {
		return nil, s.tooLarge(w)
	}
	in := incoming{exchange: w.(*exchange), request: r, wants: r.ContentLength, began: s.config.Now()}
	if in.wants < 0 {
		in.wants = s.config.BodyBytesMax + 1
	}
	for {
		if err := s.grow(&in); err != nil {
			return nil, err
		}
		s.setReadDeadline(in.exchange, in.deadline())
		n, err := r.Body.Read(in.text[len(in.text):cap(in.text)])
		in.text = in.text[:len(in.text)+n]
		switch {
		case int64(len(in.text)) > s.config.BodyBytesMax:
			return nil, s.tooLarge(w)
		case errors.Is(err, io.EOF):
			s.setReadDeadline(in.exchange, time.Time{})
			return in.text, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.hangUp(w)
			return nil, moorage.Errorf(moorage.KindBadRequest,
				"The request body came too slowly: %d bytes in %s; nothing was changed", len(in.text),
				s.config.Now().Sub(in.began).Round(time.Second))
		case err != nil:
			return nil, moorage.Errorf(moorage.KindBadRequest, "The request body ended early")
		}
	}
}

// grow makes room for further bytes of in if there is none.
func (s *Server) grow(in *incoming) error {
	was := int64(cap(in.text))
	if int64(len(in.text)) < was {
		return nil
	}
	// One byte more than is wanted, for the read that finds the end.
	grown := max(min(max(2*was, bodyBytesFirst), in.wants+1), was+1)
	if grown > bodyBytesFree {
		if err := s.takeRoom(in, min(grown, in.wants, s.config.BodyBytesMax)-in.exchange.room.held); err != nil {
			return err
		}
	}
	text := make([]byte, len(in.text), grown)
	copy(text, in.text)
	in.text = text
	return nil
}

// takeRoom waits until there is room for so many further bytes of a body. It takes that until the
// request is answered.
func (s *Server) takeRoom(in *incoming, bytes int64) error {
	if bytes <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(in.request.Context(), roomWait-in.waited)
	defer cancel()
	if in.exchange.room.number == 0 && s.config.Authenticate != nil {
		in.exchange.room.owner = CallerOf(in.request).Name
		if in.exchange.isStranger {
			in.exchange.room.owner = strangers
		}
	}
	before := s.config.Now()
	taken := s.bodies.take(ctx, &in.exchange.room, bytes)
	waited := s.config.Now().Sub(before)
	in.waited += waited
	in.began = in.began.Add(waited)
	if taken {
		return nil
	}
	if err := in.request.Context().Err(); err != nil {
		return err
	}
	s.hangUp(in.exchange)
	return moorage.Errorf(moorage.KindTooManyRequests,
		"Too many large requests are being answered; nothing was changed")
}

// deadline returns the time by which more of the body must have come.
func (in *incoming) deadline() time.Time {
	earned := time.Duration(len(in.text)) * time.Second / bodyRateLeast
	if whole := in.request.ContentLength; whole > bodyBytesFree { // it holds room
		earned = min(earned, time.Duration(float64(bodyTimeMax)*float64(len(in.text))/float64(whole)))
	}
	return in.began.Add(min(bodyPatience+earned, bodyTimeMax))
}

// expectBody bounds how long the body of r may take to begin. That holds for a body that no handler
// reads too: net/http reads it after the answer.
func (s *Server) expectBody(x *exchange, r *http.Request) {
	if r.ContentLength != 0 {
		s.setReadDeadline(x, s.config.Now().Add(bodyPatience))
	}
}

// setReadDeadline bounds the reads of the connection. The zero time ends the bound.
func (s *Server) setReadDeadline(x *exchange, deadline time.Time) {
	// Only a connection has one.
	_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(deadline)
}

// hangUp lets the answer end the connection, and go out before the rest of the body has come in.
// net/http would wait for a part of it.
func (s *Server) hangUp(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	// Without this the client waits longer, no more.
	_ = http.NewResponseController(w).EnableFullDuplex()
}

func (s *Server) tooLarge(w http.ResponseWriter) error {
	s.hangUp(w)
	return moorage.Errorf(moorage.KindTooLarge, "The request body is longer than %d bytes", s.config.BodyBytesMax)
}
