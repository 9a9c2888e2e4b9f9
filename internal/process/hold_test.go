package process

import "testing"

func TestHold(t *testing.T) {
	first, second := Hold(), Hold()
	first()
	first()
	if !Held() {
		t.Error("a release that was called twice ended another hold")
	}
	second()
	if Held() {
		t.Error("held after both releases")
	}
}
