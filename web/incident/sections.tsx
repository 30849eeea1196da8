/** The parts of an incident's page, which the one-file report shares, with what only a live page can do. */
import type { ComponentChildren, VNode } from "preact";
import { useCallback } from "preact/hooks";
import type { Verdict } from "../../src/model/verdict.ts";
import { stepsOf } from "../../src/report/answer-words.ts";
import { Actions, FindOut, FirstStep, IncidentActions } from "../../src/report/parts/actions.tsx";
import { Stacks } from "../../src/report/parts/stacks.tsx";
import { Evidence } from "../../src/report/parts/evidence.tsx";
import { Lacks } from "../../src/report/parts/lacks.tsx";
import { RecordLine } from "./record-line.tsx";
import { LogLines } from "../../src/report/parts/log-lines.tsx";
import { Metrics } from "../../src/report/parts/metrics.tsx";
import { hasReasoning, Reasoning } from "../../src/report/parts/reasoning.tsx";
import { Story, storyTitle } from "../../src/report/parts/story.tsx";
import { Suspects } from "../../src/report/parts/suspects.tsx";
import type { Incident } from "../live/api.ts";
import { brushed } from "../live/store.ts";
import { copyText } from "../shell/copy.ts";
import { Loading } from "../shell/states.tsx";
import { Time } from "../shell/time.tsx";
import { ActionButtons } from "./action-buttons.tsx";
import { useClockZone } from "./clock-zone.ts";
import type { AskedPicture } from "./use-picture.ts";
import { ZoomedTimeline } from "./zoomed-timeline.tsx";

interface Given {
  readonly incident: Incident;
  readonly verdict: Verdict;
}

export function WhoIsIt({ incident, verdict }: Given): VNode {
  const point = usePointed(incident.job);
  return (
    <Section id="suspects" title="Suspects">
      <Suspects verdict={verdict} onPoint={point} />
    </Section>
  );
}

/** Nothing where the verdict does not say how it came about. */
export function Why({ verdict }: { readonly verdict: Verdict }): VNode | null {
  if (!hasReasoning(verdict)) return null;
  return (
    <Section id="why" title="Why">
      <Reasoning verdict={verdict} onCopy={copy} />
    </Section>
  );
}

/** Confidence below which an answer is no more than that. */
const GUESS = 0.5;

export function WhatToDo({
  incident,
  verdict,
  onChange,
}: Given & { readonly onChange: (changed: Incident) => void }): VNode | null {
  // Only what a hook can do has buttons; the rest is advice.
  const able = incident.actions.filter(({ canRun, state }) => canRun || state !== "proposed");
  const proposed = new Set(able.map((action) => action.do));
  const { first, next } = stepsOf({
    ...verdict,
    actions: verdict.actions.filter((action) => !proposed.has(action.do)),
  });
  // Nobody waits for an answer to what was proposed while it lasted.
  const isOver = incident.state === "resolved";
  const shown = isOver ? able.filter(({ state }) => state !== "proposed") : able;
  const { wouldHelp } = verdict;
  const isOpen = shown.length === 0 && first === null;
  if (isOpen && (isOver || wouldHelp.length === 0)) return null;
  // A guess is checked before anybody takes a machine out for it.
  const isGuess = !isOver && verdict.confidence < GUESS;
  const check = first && (
    <FirstStep
      action={first}
      label={
        isOver ? "If it comes back" : shown.length > 0 && !isGuess ? "To make sure" : "Do first"
      }
      onCopy={copy}
    />
  );
  return (
    <section class="section todo" aria-labelledby="todo-title">
      <h2 id="todo-title" class="visually-hidden">
        What to do
      </h2>
      <div class="section-body">
        {isGuess && check}
        <IncidentActions
          actions={shown}
          // Over is over: nothing is expected any more.
          verdict={isOver ? undefined : verdict}
          time={(ms) => <Time ms={ms} />}
          onCopy={copy}
          buttons={(action) =>
            isOver && action.canUndo !== true ? null : (
              <ActionButtons incident={incident} action={action} onChange={onChange} />
            )
          }
        />
        {!isGuess && check}
        {isOpen && <FindOut wouldHelp={wouldHelp} onCopy={copy} />}
        {next.length > 0 && (
          <details class="fl-details">
            <summary>Then</summary>
            <Actions actions={next} verdict={verdict} onCopy={copy} />
          </details>
        )}
      </div>
    </section>
  );
}

export function Pictures({
  incident,
  asked,
}: {
  readonly incident: Incident;
  readonly asked: AskedPicture;
}): VNode {
  const point = usePointed(incident.job);
  const inZone = useClockZone();
  const picture = asked.value;
  if (picture === null) return <NoPicture asked={asked} />;
  return (
    <>
      {(picture.stacks ?? []).length > 0 && (
        <Section id="stacks" title="Where the culprit stands">
          <Stacks stacks={picture.stacks ?? []} />
        </Section>
      )}
      {picture.story && (
        <Section id="story" title={storyTitle(picture.story)}>
          <Story story={picture.story} onPoint={point} />
        </Section>
      )}
      {picture.metrics.length > 0 && (
        <Section id="metrics" title="Metrics compared with peers">
          <Metrics pictures={picture.metrics} zone={inZone} />
        </Section>
      )}
      {picture.logs.length > 0 && (
        <Section id="logs" title="Log lines">
          <LogLines
            logs={picture.logs}
            zone={inZone}
            beside={(text) => <RecordLine incident={incident} text={text} />}
          />
        </Section>
      )}
      {picture.timeline && (
        <Section id="timeline" title="Kernels around the worst step">
          <ZoomedTimeline timeline={picture.timeline} />
        </Section>
      )}
      {picture.story === null && asked.isAwaited && <Loading what="the story" />}
      {picture.lacks.length > 0 && (
        <section class="section">
          <Lacks lacks={picture.lacks} />
        </section>
      )}
    </>
  );
}

function NoPicture({ asked }: { readonly asked: AskedPicture }): VNode {
  const { error, isAwaited } = asked;
  if (error === null || (error.status === 404 && isAwaited)) return <Loading what="the plots" />;
  return (
    <p class="soft section">
      {error.status === 404
        ? "This incident has no plots: none could be drawn, they were not kept, or another service keeps them."
        : `The plots could not be fetched: ${error.message}.`}
    </p>
  );
}

export function Findings({ verdict }: { readonly verdict: Verdict }): VNode {
  const { missing, wouldHelp } = verdict;
  return (
    <>
      {(missing.length > 0 || wouldHelp.length > 0) && (
        <Section id="missing" title="What is missing">
          {missing.length > 0 && <Sentences all={missing} />}
          {wouldHelp.length > 0 && <p>It would help to have:</p>}
          {wouldHelp.length > 0 && <Sentences all={wouldHelp} />}
        </Section>
      )}
      <Section id="evidence" title="Evidence">
        <Evidence verdict={verdict} />
      </Section>
    </>
  );
}

function Section({
  id,
  title,
  children,
}: {
  readonly id: string;
  readonly title: string;
  readonly children: ComponentChildren;
}): VNode {
  return (
    <section class="section" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{title}</h2>
      <div class="section-body">{children}</div>
    </section>
  );
}

function Sentences({ all }: { readonly all: readonly string[] }): VNode {
  return (
    <ul class="sentences">
      {all.slice(0, 40).map((sentence, i) => (
        <li key={i}>{sentence.slice(0, 600)}</li>
      ))}
    </ul>
  );
}

/** Ranks that are pointed at here are marked wherever else they are shown. */
function usePointed(job: string): (ranks: readonly number[] | null) => void {
  return useCallback(
    (ranks) => brushed.set(ranks === null ? null : { job, ranks: new Set(ranks) }),
    [job],
  );
}

function copy(command: string): void {
  void copyText(command);
}
