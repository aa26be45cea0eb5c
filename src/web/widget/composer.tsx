// Where people write. It is never disabled, and what stands in it survives a reload.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { InputMode } from "../../protocol/trigger.ts";
import { maxMessageChars } from "../../protocol/widget-wire.ts";
import { SendIcon } from "../shared/icons.tsx";
import { read, write } from "./keep.ts";

type Props = {
  draftKey: string;
  label: string;
  placeholder: string;
  small?: boolean;
  autoFocus?: boolean;
  /** A text to put into the field, for a suggestion or a refused message. */
  given?: { text: string; at: number } | null;
  /** The task is at work: what is said may also wait for its report, or stop it first. */
  busy?: boolean;
  onSend: (text: string, mode?: InputMode) => void;
};

export function Composer(props: Props) {
  const [text, setText] = useState(() => read(props.draftKey) ?? "");
  const field = useRef<HTMLTextAreaElement>(null);
  const left = maxMessageChars - text.length;

  const change = (next: string) => {
    setText(next);
    write(props.draftKey, next === "" ? null : next);
  };

  useLayoutEffect(() => {
    const area = field.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, 200)}px`;
    // What it grew by, its buttons too, stays in sight of whoever writes in it.
    if (document.activeElement === area) area.form?.scrollIntoView({ block: "nearest" });
  }, [text]);

  useEffect(() => {
    if (props.autoFocus) field.current?.focus();
  }, [props.autoFocus]);

  useEffect(() => {
    if (!props.given) return;
    change(props.given.text);
    field.current?.focus();
  }, [props.given]);

  const submit = (mode?: InputMode) => {
    const message = text.trim();
    if (message !== "" && left >= 0) {
      props.onSend(message, mode);
      change("");
    }
    field.current?.focus();
  };

  const onKeyDown = (event: KeyboardEvent) => {
    // While a word is being composed, Enter belongs to the input method.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  };

  return (
    <form
      class={props.small ? "composer composer-small" : "composer"}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <textarea
        ref={field}
        rows={1}
        dir="auto"
        aria-label={props.label}
        placeholder={props.placeholder}
        value={text}
        enterkeyhint="send"
        onInput={(event) => change(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <button type="submit" class={text.trim() === "" ? "btn send" : "btn btn-main send"} aria-label="Send">
        <SendIcon />
      </button>
      {props.busy && text.trim() !== "" ? (
        <p class="composer-note card-line">
          <button type="button" class="btn btn-bare" onClick={() => submit("queue")}>
            Queue
          </button>
          <button type="button" class="btn btn-bare" onClick={() => submit("interrupt")}>
            Interrupt
          </button>
        </p>
      ) : null}
      {left < 500 ? (
        <p class={left < 0 ? "composer-note tone-bad" : "composer-note muted"} role="status">
          {left < 0 ? `${-left} characters too many: split it into two messages.` : `${left} characters left.`}
        </p>
      ) : null}
    </form>
  );
}
