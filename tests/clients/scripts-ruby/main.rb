# frozen_string_literal: true

# Sidekiq, as Debian packages it: jobs, jobs at a time, and retries, which one of its scripts moves.
#
# Usage: main.rb HOST PORT PASSWORD UNIX_SOCKET. The server must be empty; it is flushed at the end.

require "sidekiq"
require "sidekiq/api"
require "sidekiq/launcher"

HOST, PORT, PASSWORD, = ARGV
SETTINGS = { host: HOST, port: Integer(PORT), password: PASSWORD, db: 5 }.freeze
# What is expected has happened within this, however busy the machine.
SECONDS_MAX = 60
JOBS = 200

# Its own use of the client is of an older version of that.
Redis.silence_deprecations = true
Sidekiq.configure_client { |config| config.redis = SETTINGS }
Sidekiq.redis = SETTINGS
Sidekiq.logger.level = Logger::FATAL

# What jobs have done.
class Done
  def initialize
    @lock = Mutex.new
    @counts = Hash.new(0)
  end

  def add(name)
    @lock.synchronize { @counts[name] += 1 }
  end

  def count(name)
    @lock.synchronize { @counts[name] }
  end
end
DONE = Done.new

# Says that it has run.
class Plain
  include Sidekiq::Worker

  def perform(name)
    DONE.add(name)
  end
end

# Fails the first time.
class Failing
  include Sidekiq::Worker
  sidekiq_options retry: 2
  sidekiq_retry_in { 1 }

  def perform(name)
    raise "the first time" if DONE.add(name) == 1
  end
end

# Fails for good.
class Dying
  include Sidekiq::Worker
  sidekiq_options retry: 0, queue: "low"

  def perform
    raise "always"
  end
end

@failed = 0

def check(name)
  yield
  puts "ok - #{name}"
rescue StandardError => e
  @failed += 1
  puts "not ok - #{name}: #{e.class}: #{e.message}"
  puts e.backtrace.first(10).map { |line| "    #{line}" }
ensure
  $stdout.flush
end

def equal(got, expected)
  raise "got #{got.inspect}, expected #{expected.inspect}" unless got == expected
end

def eventually
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + SECONDS_MAX
  until yield
    raise "did not happen within #{SECONDS_MAX} s" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

    sleep 0.02
  end
end

# Workers in this process.
def workers
  Sidekiq::Launcher.new(Sidekiq.options.merge(queues: %w[default low], concurrency: 4, timeout: SECONDS_MAX))
end

# Moves what is due, as the poller does every few seconds.
def move_due
  Sidekiq::Scheduled::Enq.new.enqueue_jobs
end

check("jobs wait in their queue") do
  JOBS.times { |number| Plain.perform_async("plain #{number}") }
  Sidekiq::Client.push_bulk("class" => Plain, "args" => [["bulk"]] * JOBS)
  equal(Sidekiq::Queue.new.size, 2 * JOBS)
end

check("jobs at a time are moved when it has come, and not before") do
  3.times { |number| Plain.perform_in(3600 + number, "late") }
  5.times { |number| Plain.perform_at(Time.now.to_f + 0.5 + number / 10.0, "due") }
  equal(Sidekiq::ScheduledSet.new.size, 8)
  move_due
  equal(Sidekiq::Queue.new.size, 2 * JOBS)
  eventually do
    move_due
    Sidekiq::Queue.new.size == 2 * JOBS + 5
  end
  equal(Sidekiq::ScheduledSet.new.size, 3)
end

check("several pollers move each job once") do
  JOBS.times { Plain.perform_at(Time.now.to_f + 0.1, "moved") }
  sleep 0.2
  Array.new(4) { Thread.new { move_due } }.each(&:value)
  jobs = Sidekiq::Queue.new.map(&:jid)
  equal([jobs.size, jobs.uniq.size], [3 * JOBS + 5] * 2)
end

check("the script is loaded again after SCRIPT FLUSH") do
  enq = Sidekiq::Scheduled::Enq.new
  enq.enqueue_jobs
  Sidekiq.redis { |connection| connection.script(:flush) }
  Plain.perform_at(Time.now.to_f + 0.1, "flushed")
  sleep 0.2
  enq.enqueue_jobs
  equal(Sidekiq::Queue.new.size, 3 * JOBS + 6)
end

launcher = workers
launcher.run

check("every job runs once") do
  eventually { Sidekiq::Stats.new.processed == 3 * JOBS + 6 }
  equal((0...JOBS).map { |number| DONE.count("plain #{number}") }.uniq, [1])
  equal(%w[bulk moved due flushed late].map { |name| DONE.count(name) }, [JOBS, JOBS, 5, 1, 0])
  equal(Sidekiq::Queue.new.size, 0)
end

check("a job that fails is tried again") do
  Failing.perform_async("again")
  eventually { Sidekiq::RetrySet.new.size == 1 }
  # At once: it would wait some random seconds.
  Sidekiq::RetrySet.new.first.reschedule(Time.now.to_f)
  eventually do
    move_due
    DONE.count("again") == 2
  end
  equal(Sidekiq::RetrySet.new.size, 0)
end

check("a job that is not tried again is dead") do
  Dying.perform_async
  eventually { Sidekiq::DeadSet.new.size == 1 }
  equal(Sidekiq::DeadSet.new.first.klass, "Dying")
end

check("workers stop in order") { launcher.stop }
check("the server is left empty") { equal(Sidekiq.redis(&:flushall), "OK") }
exit(@failed.zero? ? 0 : 1)
