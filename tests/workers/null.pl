#!/usr/bin/perl
# A worker that does nothing, in Perl: docs/worker-protocol.md spoken by another language, with the
# bundle's files in place of shared memory. Logits and gradients are zero, weights stay as loaded.
use strict;
use warnings;
use JSON::PP;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

open my $in, '<&=', $ENV{PRONY_REQUEST_FD} or die "no PRONY_REQUEST_FD: $!\n";
open my $out, '>&=', $ENV{PRONY_REPLY_FD} or die "no PRONY_REPLY_FD: $!\n";
my ($true, $false, $folder, $recipe, $graph, $device, %value, %fed) = (JSON::PP::true, JSON::PP::false);
my $place = 'new'; # which verb may come where
my %may = (hello => 'new', supports => 'greeted', open => 'greeted', build => 'opened', feed => 'built ran',
	run => 'built ran', read => 'built ran', close => 'new greeted opened built ran failed');
my %then = (hello => 'greeted', open => 'opened', build => 'built', run => 'ran');

sub now { return int(clock_gettime(CLOCK_MONOTONIC) * 1e9) }
sub slurp { local $/; open my $f, '<:raw', "$folder/$_[0]" or die "$folder/$_[0]: $!\n"; return <$f> }
sub spill { open my $f, '>:raw', "$folder/$_[0]" or die "$_[0]: $!\n"; print $f $_[1]; close $f or die "$!\n" }
sub bytes { my $n = 4; $n *= $_ for @{$_[0]}; return $n }
sub load { ($folder) = @_; ($recipe, $graph) = @{decode_json(slurp('case.json'))}{qw(recipe graph)} }
sub weight { # the bytes of one tensor
	my ($length, $image) = unpack 'Q< a*', slurp('weights.safetensors');
	my ($begin, $end) = @{decode_json(substr $image, 0, $length)->{$_[0]}{data_offsets}};
	return substr $image, $length + $begin, $end - $begin;
}
sub within { my ($i, $end, $what) = @_; die "$what is outside 0 to @{[$end - 1]}\n" unless ($i // '') =~ /^\d+$/ && $i < $end }
my %verb = (
	hello => sub { my ($q) = @_;
		die "hello needs protocol 2, device, backend, options, rank and world_size\n" unless ($q->{protocol} // 0) eq 2
			&& !ref($q->{device} // []) && $q->{device} =~ /^[a-z]/ && defined $q->{backend} && ref $q->{options} eq 'ARRAY';
		within($q->{rank}, $q->{world_size} // 0, 'rank');
		die { status => 'unsupported', error => 'there is the CPU alone, no backend and no option' } # and close is left
			if $q->{device} ne 'cpu' || $q->{backend} ne '' || @{$q->{options}} || $q->{world_size} > 1;
		$device = $q->{device};
		return { protocol => 2, name => 'null', version => sprintf('%vd', $^V), libraries => {}, rank => 0,
			world_size => 1, shared_memory => $false, import_ns => 0, devices => ['cpu'],
			precisions => [qw(fp32 tf32 fp16 bf16)], stages => [qw(forward forward-backward train load)] } },
	supports => sub { load($_[0]{bundle}); return { supported => $true } },
	open => sub { load($_[0]{bundle}); %value = map { $_->{name} => $_ } @{$graph->{values}};
		return { device => $device, threads => $recipe->{threads}, precision => $recipe->{precision}, open_ns => 0 } },
	build => sub { return { parameters => undef, macs => undef, build_ns => 0 } },
	feed => sub { within(@{$_[0]}{$_}, $recipe->{slots}, $_) for qw(slot batch);
		$fed{$_[0]{slot}} = 1; return { feed_ns => 0 } },
	run => sub { my ($steps, $mode) = @{$_[0]}{qw(steps sync)};
		my $every = { end => $steps, step => 1, blocks => $_[0]{every} }->{$mode};
		within($_[0]{slot}, $recipe->{slots}, 'slot');
		die "a run needs steps, sync and every\n" if grep { ($_ // 0) < 1 } $steps, $every;
		my ($first, $slots) = ($_[0]{slot}, $recipe->{slots});
		$fed{($first + $_) % $slots} or die "a slot was never fed\n" for 0 .. ($steps < $slots ? $steps : $slots) - 1;
		my ($end, @records) = now();
		for my $i (1 .. $steps) { # a step is nothing, and so is waiting for it
			next if $i % $every && $i < $steps;
			push @records, $end, now();
			$end = $records[-1];
		}
		spill('records.bin', pack 'q<*', @records);
		return { steps => $steps, records => @records / 2, begin_at_ns => $records[0], end_at_ns => $records[-1] } },
	read => sub { my ($what, $data, %header) = ($_[0]{what}, '');
		my $kind = { qw(weights parameter gradients parameter state state) }->{$what};
		die "nothing to read is called so\n" unless $kind || ($what // '') =~ /^(logits|loss)$/;
		die "no step has run\n" if $place ne 'ran' && $what !~ /^(weights|state)$/;
		die "the stage forward has none\n" if $recipe->{stage} eq 'forward' && $what =~ /^(loss|gradients)$/;
		for my $name ($kind ? map { $_->{name} } grep { $_->{kind} eq $kind } @{$graph->{values}} : $what) {
			my $shape = $what eq 'loss' ? [] : $value{$kind ? $name : $graph->{logits}}{shape};
			my ($begin, $zeros) = (length $data, "\0" x bytes($shape));
			$data .= $what eq 'weights' || $what eq 'state' ? weight($name) : $zeros;
			$header{$name} = { dtype => 'F32', shape => $shape, data_offsets => [$begin, length $data] };
		}
		my $text = encode_json(\%header);
		spill('read.safetensors', my $image = pack('Q<', length $text) . $text . $data);
		return { bytes => length $image } },
	close => sub { return {} });
while (my $line = <$in>) {
	my $request = eval { my $json = decode_json($line); ref $json eq 'HASH' ? $json : undef } // {};
	my $verb = ref($request->{verb} // []) ? '' : $request->{verb};
	my $reply = eval { my $places = $may{$verb} // die "unknown verb\n";
		$places =~ /\b$place\b/ or die "$verb cannot come here\n";
		$verb{$verb}->($request) };
	$place = $then{$verb} // $place if $reply;
	my $refusal = ref $@ ? $@ : { status => 'invalid', error => $@ =~ /(.*)/ };
	$place = 'failed' if !$reply && $refusal->{status} ne 'invalid';
	$reply = $reply ? { %$reply, ok => $true } : { %$refusal, ok => $false };
	syswrite $out, encode_json({ %$reply, id => $request->{id} }) . "\n";
	last if $verb eq 'close';
}
