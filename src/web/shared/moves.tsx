// Moving what is queued, a place up or down: by pointer, by keyboard, and heard by who does not see it.
import { useLayoutEffect, useRef } from "preact/hooks";
import { ChevronIcon } from "./icons.tsx";

/** What an item comes before when it moves by one place, null for the end; undefined when there is no such place. */
export function placeBefore(ids: readonly string[], id: string, up: boolean): string | null | undefined {
  const at = ids.indexOf(id);
  if (up) return at > 0 ? ids[at - 1] : undefined;
  return at >= 0 && at < ids.length - 1 ? (ids[at + 2] ?? null) : undefined;
}

/** The two buttons of each item. One move at a time: until the list has another revision, or `move` failed, the next one waits. */
export function useMoves(list: {
  ids: readonly string[];
  revision: number;
  move: (id: string, before: string | null) => undefined | Promise<unknown>;
  say: (text: string) => void;
}): (id: string, about: string) => preact.ComponentChildren {
  const { ids, revision } = list;
  const under = useRef<{ revision: number; id: string; about: string; button: HTMLElement } | null>(null);
  useLayoutEffect(() => {
    const moved = under.current;
    if (moved === null || moved.revision === revision) return;
    under.current = null;
    const at = ids.indexOf(moved.id);
    if (at < 0) return;
    // An element that changes its place loses the focus.
    if (document.activeElement === document.body) moved.button.focus();
    list.say(`“${moved.about}” is now ${at + 1} of ${ids.length}.`);
  }, [revision]);
  if (ids.length < 2) return () => null;
  return (id, about) =>
    [true, false].map((up) => {
      const before = placeBefore(ids, id, up);
      return (
        <button
          key={String(up)}
          type="button"
          class="btn btn-bare"
          aria-label={`Move ${up ? "up" : "down"}: “${about}”`}
          aria-disabled={before === undefined ? true : undefined}
          onClick={({ currentTarget: button }) => {
            if (before === undefined || under.current?.revision === revision) return;
            under.current = { revision, id, about, button };
            list.move(id, before)?.catch(() => {
              under.current = null;
            });
          }}
        >
          <ChevronIcon open={up} />
        </button>
      );
    });
}
