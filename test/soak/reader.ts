// A client process of the soak, which may be killed at any moment: takes jobs from standard input, one a line, and answers each
// with its result when its process has ended.
import { createInterface } from "node:readline";
import { createClient } from "../../src/client/index.js";
import type { Job } from "./jobs.js";
import { runJob } from "./run-job.js";

const [url = "", token = ""] = process.argv.slice(2);
const client = createClient({ url, token });

createInterface(process.stdin).on("line", (line) => {
  const job = JSON.parse(line) as Job;
  runJob(client, job).then(
    (result) => process.stdout.write(`${JSON.stringify(result)}\n`),
    (error: Error) => process.stdout.write(`${JSON.stringify({ id: job.id, error: error.stack })}\n`),
  );
});
